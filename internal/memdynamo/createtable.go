package memdynamo

// createTable creates a table that is active at once. At AWS, a new table is CREATING for some
// seconds.
func (db *DB) createTable(in createTableRequest) (any, error) {
	if err := checkTableName(in.TableName); err != nil {
		return nil, err
	}
	if in.BillingMode == "" {
		in.BillingMode = "PROVISIONED"
	}
	switch {
	case in.BillingMode != "PROVISIONED" && in.BillingMode != "PAY_PER_REQUEST":
		return nil, invalidf("1 validation error detected: Value '%s' at 'billingMode' failed to satisfy constraint: Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]", in.BillingMode)
	case in.BillingMode == "PROVISIONED" && in.ProvisionedThroughput == nil:
		return nil, invalidf("No provisioned throughput specified for the table")
	}
	keys, err := keyAttributes(in)
	if err != nil {
		return nil, err
	}
	if _, ok := db.tables[in.TableName]; ok {
		return nil, failf(ResourceInUse, "Table already exists: %s", in.TableName)
	}
	t := &table{name: in.TableName, keys: keys, items: map[string]Item{}, billing: in.BillingMode, created: db.clock()}
	db.tables[t.name] = t
	return struct{ TableDescription tableDescription }{t.describe()}, nil
}

type createTableRequest struct {
	TableName             string
	KeySchema             []keySchemaElement
	AttributeDefinitions  []attributeDefinition
	BillingMode           string
	ProvisionedThroughput *struct{ ReadCapacityUnits, WriteCapacityUnits int64 }
	Tags                  []struct{ Key, Value string }
}

type keySchemaElement struct{ AttributeName, KeyType string }

type attributeDefinition struct{ AttributeName, AttributeType string }

// keyAttributes returns the key schema of a CreateTable request.
func keyAttributes(in createTableRequest) ([]keyAttribute, error) {
	types := map[string]string{}
	for _, d := range in.AttributeDefinitions {
		if d.AttributeType != TypeString && d.AttributeType != TypeNumber && d.AttributeType != TypeBinary {
			return nil, invalidf("Member must satisfy enum value set: [B, N, S]")
		}
		types[d.AttributeName] = d.AttributeType
	}
	if len(in.KeySchema) < 1 || len(in.KeySchema) > 2 {
		return nil, invalidf("Invalid KeySchema: a table has one or two key attributes, this has %d", len(in.KeySchema))
	}
	var keys []keyAttribute
	for i, k := range in.KeySchema {
		if role := []string{"HASH", "RANGE"}[i]; k.KeyType != role {
			return nil, invalidf("Invalid KeySchema: The %s key is not specified as key number %d", role, i+1)
		}
		typ, ok := types[k.AttributeName]
		if !ok {
			return nil, invalidf("One or more parameter values were invalid: Some index key attributes are not defined in AttributeDefinitions. Keys: [%s]", k.AttributeName)
		}
		keys = append(keys, keyAttribute{name: k.AttributeName, typ: typ, role: k.KeyType})
	}
	if len(types) != len(keys) {
		return nil, invalidf("One or more parameter values were invalid: Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
	}
	return keys, nil
}
