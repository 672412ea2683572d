package memdynamo

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// table is a table with its items.
type table struct {
	name    string
	keys    []keyAttribute // partition key, then the sort key if it has one
	items   map[string]Item
	ttl     string // the TTL attribute; empty while TTL is off
	billing string
	created time.Time

	consistency Consistency // mode of a global table; empty if the table is not global
	replicas    []replica
}

type keyAttribute struct {
	name string
	typ  string // S, N or B
	role string // HASH or RANGE
}

// keyOf returns the key attributes of an item.
func (t *table) keyOf(item Item) Item {
	key := make(Item, len(t.keys))
	for _, k := range t.keys {
		if v, ok := item[k.name]; ok {
			key[k.name] = v
		}
	}
	return key
}

// encode returns a key as text. Different keys have different texts.
func (t *table) encode(key Item) string {
	var b strings.Builder
	for _, k := range t.keys {
		text := key[k.name].Text
		_, _ = fmt.Fprintf(&b, "%d:%s", len(text), text)
	}
	return b.String()
}

// isKey reports whether the attribute is part of the key.
func (t *table) isKey(name string) bool {
	for _, k := range t.keys {
		if k.name == name {
			return true
		}
	}
	return false
}

// checkPaths refuses paths into a key attribute, which has no inner values.
func (t *table) checkPaths(paths []path) error {
	for _, p := range paths {
		if len(p) > 1 && t.isKey(p[0].name) {
			return invalidf("Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: %s", p[0].name)
		}
	}
	return nil
}

// checkWritten refuses an update that writes to a key attribute.
func (t *table) checkWritten(paths projection) error {
	for _, p := range paths {
		if t.isKey(p[0].name) {
			return invalidf("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", p[0].name)
		}
	}
	return nil
}

// checkItem returns an error if the item lacks a valid key.
func (t *table) checkItem(item Item) error {
	for _, k := range t.keys {
		v, ok := item[k.name]
		switch {
		case !ok:
			return invalidf("One or more parameter values were invalid: Missing the key %s in the item", k.name)
		case v.Type != k.typ:
			return invalidf("One or more parameter values were invalid: Type mismatch for key %s expected: %s actual: %s", k.name, k.typ, v.Type)
		}
		if err := k.check(v); err != nil {
			return err
		}
	}
	return nil
}

// checkKey returns an error unless key has exactly the table's key attributes, with valid values.
func (t *table) checkKey(key Item) error {
	for _, k := range t.keys {
		if v, ok := key[k.name]; !ok || v.Type != k.typ || len(key) != len(t.keys) {
			return invalidf("The provided key element does not match the schema")
		}
		if err := k.check(key[k.name]); err != nil {
			return err
		}
	}
	return nil
}

func (k keyAttribute) check(v Value) error {
	const maxHash, maxRange = 2048, 1024 // bytes ("Constraints", Partition keys and sort keys)
	if v.Type == TypeNumber {
		return nil
	}
	if err := k.checkEmpty(v); err != nil {
		return err
	}
	switch {
	case k.role == "HASH" && len(v.Text) > maxHash:
		return invalidf("One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes")
	case k.role == "RANGE" && len(v.Text) > maxRange:
		return invalidf("One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
	}
	return nil
}

// checkEmpty returns an error if v has the type of the key and is empty.
func (k keyAttribute) checkEmpty(v Value) error {
	kind := map[string]string{TypeString: "string", TypeBinary: "binary"}[k.typ]
	if kind == "" || v.Type != k.typ || v.Text != "" {
		return nil
	}
	return invalidf("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s", kind, k.name)
}

// expired reports whether TTL may delete the item: its TTL attribute must be a number of epoch
// seconds in the past, at most five years ago ("How it works: DynamoDB Time to Live (TTL)").
func (t *table) expired(item Item, now time.Time) bool {
	v, ok := item[t.ttl]
	if t.ttl == "" || !ok || v.Type != TypeNumber {
		return false
	}
	at := mustNumber(v.Text)
	return at.cmp(epoch(now)) < 0 && at.cmp(epoch(now.AddDate(-5, 0, 0))) >= 0
}

// epoch returns the time in seconds since 1970, to the nanosecond.
func epoch(t time.Time) number {
	seconds, fraction := integer(int(t.Unix())), mustNumber(fmt.Sprintf("0.%09d", t.Nanosecond()))
	n, err := seconds.add(fraction)
	if err != nil {
		panic(err) // can't happen: the sum has less than 38 digits
	}
	return n
}

var tableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`) })

func checkTableName(name string) error {
	switch {
	case name == "":
		return invalidf("1 validation error detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null")
	case !tableName().MatchString(name):
		return invalidf("Invalid table/index name.  Table/index names must be between 3 and 255 characters long, and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'")
	}
	return nil
}

type tableRequest struct {
	TableName string
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

func (db *DB) describeTable(in tableRequest) (any, error) {
	t, err := db.described(in.TableName)
	if err != nil {
		return nil, err
	}
	return struct{ Table tableDescription }{t.describe()}, nil
}

type timeToLiveSpecification struct {
	AttributeName string
	Enabled       bool
}

type updateTimeToLiveRequest struct {
	TableName               string
	TimeToLiveSpecification timeToLiveSpecification
}

// updateTimeToLive switches TTL on or off at once. At AWS this takes up to an hour, during which
// another change is refused.
func (db *DB) updateTimeToLive(in updateTimeToLiveRequest) (any, error) {
	t, err := db.described(in.TableName)
	if err != nil {
		return nil, err
	}
	spec := in.TimeToLiveSpecification
	switch {
	case t.consistency == Strong:
		return nil, invalidf("TimeToLive is not supported for a table with multi-Region strong consistency")
	case spec.AttributeName == "":
		return nil, invalidf("1 validation error detected: Value null at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: Member must not be null")
	case !spec.Enabled && t.ttl == "":
		return nil, invalidf("TimeToLive is already disabled")
	case t.ttl != "" && t.ttl != spec.AttributeName:
		return nil, invalidf("TimeToLive is active on a different AttributeName: current AttributeName is %s", t.ttl)
	case spec.Enabled && t.ttl != "":
		return nil, invalidf("TimeToLive is already enabled")
	}
	t.ttl = ""
	if spec.Enabled {
		t.ttl = spec.AttributeName
	}
	return struct{ TimeToLiveSpecification timeToLiveSpecification }{spec}, nil
}

type timeToLiveDescription struct {
	TimeToLiveStatus string
	AttributeName    string `json:",omitempty"`
}

func (db *DB) describeTimeToLive(in tableRequest) (any, error) {
	t, err := db.described(in.TableName)
	if err != nil {
		return nil, err
	}
	d := timeToLiveDescription{TimeToLiveStatus: "DISABLED", AttributeName: t.ttl}
	if t.ttl != "" {
		d.TimeToLiveStatus = "ENABLED"
	}
	return struct{ TimeToLiveDescription timeToLiveDescription }{d}, nil
}
