package template

// Table is a resource of type AWS::DynamoDB::Table.
type Table struct {
	LogicalID    string
	Name         string // TableName, or the logical ID if there is none
	Attributes   []Attribute
	Key          []KeyPart
	TTLAttribute string // empty if TTL is off
	Stream       string // StreamViewType; empty if there is no stream
	Indexes      []Index
}

// Attribute is an entry of AttributeDefinitions.
type Attribute struct {
	Name string
	Type string // S, N or B
}

// KeyPart is an entry of a KeySchema.
type KeyPart struct {
	Name string
	Type string // HASH or RANGE
}

// Index is a global secondary index.
type Index struct {
	Name       string
	Key        []KeyPart
	Projection string   // ALL, KEYS_ONLY or INCLUDE
	NonKey     []string // projected attributes, with INCLUDE only
}

func (r *reader) table(logicalID string, resource *node) (Table, error) {
	p := r.properties(logicalID, "", resource)
	t := Table{LogicalID: logicalID}
	var err error
	if t.Name, err = r.physicalName(logicalID, resource); err != nil {
		return Table{}, err
	}
	if p.node.field("LocalSecondaryIndexes") != nil {
		return Table{}, errorAt(p.node, "%s: LocalSecondaryIndexes are not read for a local run", logicalID)
	}
	err = p.each("AttributeDefinitions", func(item properties) error {
		name, kind, err := item.pair("AttributeName", "AttributeType")
		t.Attributes = append(t.Attributes, Attribute{name, kind})
		return err
	})
	if err != nil {
		return Table{}, err
	}
	if t.Key, err = p.keySchema(); err != nil {
		return Table{}, err
	}
	ttl, ok, err := p.inner("TimeToLiveSpecification")
	if err != nil {
		return Table{}, err
	}
	if ok {
		enabled, err := ttl.text("Enabled", "false")
		if err != nil {
			return Table{}, err
		}
		if enabled == "true" {
			if t.TTLAttribute, err = ttl.required("AttributeName"); err != nil {
				return Table{}, err
			}
		}
	}
	stream, ok, err := p.inner("StreamSpecification")
	if err != nil {
		return Table{}, err
	}
	if ok {
		if t.Stream, err = stream.required("StreamViewType"); err != nil {
			return Table{}, err
		}
	}
	err = p.each("GlobalSecondaryIndexes", func(item properties) error {
		index, err := item.index()
		t.Indexes = append(t.Indexes, index)
		return err
	})
	return t, err
}

func (p properties) index() (Index, error) {
	name, err := p.required("IndexName")
	if err != nil {
		return Index{}, err
	}
	index := Index{Name: name}
	if index.Key, err = p.keySchema(); err != nil {
		return Index{}, err
	}
	projection, ok, err := p.inner("Projection")
	if err != nil {
		return Index{}, err
	}
	if !ok {
		return Index{}, errorAt(p.node, "%s: Projection is missing", p.owner)
	}
	if index.Projection, err = projection.required("ProjectionType"); err != nil {
		return Index{}, err
	}
	index.NonKey, err = projection.texts("NonKeyAttributes")
	return index, err
}

func (p properties) keySchema() ([]KeyPart, error) {
	var key []KeyPart
	err := p.each("KeySchema", func(item properties) error {
		name, kind, err := item.pair("AttributeName", "KeyType")
		key = append(key, KeyPart{name, kind})
		return err
	})
	if err == nil && len(key) == 0 {
		err = errorAt(p.node, "%s: KeySchema is missing", p.owner)
	}
	return key, err
}

// each calls read for every mapping in a list property, until read returns an error.
func (p properties) each(key string, read func(properties) error) error {
	value, err := p.get(key)
	if err != nil || value == nil {
		return err
	}
	if value.kind != list {
		return errorAt(value, "%s: %s must be a list, got %s", p.owner, key, value.describe())
	}
	for _, item := range value.items {
		if item.kind != mapping {
			return errorAt(item, "%s: %s must be a list of mappings, got %s in it", p.owner, key, item.describe())
		}
		if err := read(properties{p.reader, p.owner + "." + key, item}); err != nil {
			return err
		}
	}
	return nil
}

// required returns a scalar property. It returns an error if the property is absent or empty.
func (p properties) required(key string) (string, error) {
	value, err := p.text(key, "")
	if err == nil && value == "" {
		err = errorAt(p.node, "%s: %s is missing", p.owner, key)
	}
	return value, err
}

func (p properties) pair(first, second string) (string, string, error) {
	one, err := p.required(first)
	if err != nil {
		return "", "", err
	}
	two, err := p.required(second)
	return one, two, err
}
