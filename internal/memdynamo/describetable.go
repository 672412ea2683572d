package memdynamo

func (db *DB) describeTable(in tableRequest) (any, error) {
	t, err := db.described(in.TableName)
	if err != nil {
		return nil, err
	}
	return struct{ Table tableDescription }{t.describe()}, nil
}

type tableRequest struct {
	TableName string
}

type tableDescription struct {
	TableName            string
	TableArn             string
	TableStatus          string
	CreationDateTime     float64
	KeySchema            []keySchemaElement
	AttributeDefinitions []attributeDefinition
	BillingModeSummary   struct{ BillingMode string }
	ItemCount            int
	TableSizeBytes       int

	MultiRegionConsistency Consistency `json:",omitempty"`
	Replicas               []replica   `json:",omitempty"`
}

// described returns the table with this name, for an operation on tables. The error for a missing
// table names it.
func (db *DB) described(name string) (*table, error) {
	if err := checkTableName(name); err != nil {
		return nil, err
	}
	t, ok := db.tables[name]
	if !ok {
		return nil, failf(ResourceNotFound, "Requested resource not found: Table: %s not found", name)
	}
	return t, nil
}

func (t *table) describe() tableDescription {
	d := tableDescription{
		TableName: t.name, TableArn: "arn:aws:dynamodb:us-east-1:000000000000:table/" + t.name, TableStatus: "ACTIVE",
		CreationDateTime: float64(t.created.UnixMilli()) / 1000, ItemCount: len(t.items),
		MultiRegionConsistency: t.consistency, Replicas: t.replicas,
	}
	for _, k := range t.keys {
		d.KeySchema = append(d.KeySchema, keySchemaElement{k.name, k.role})
		d.AttributeDefinitions = append(d.AttributeDefinitions, attributeDefinition{k.name, k.typ})
	}
	d.BillingModeSummary.BillingMode = t.billing
	for _, item := range t.items {
		d.TableSizeBytes += item.Size()
	}
	return d
}
