package iam

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// The condition keys of DynamoDB ("Using IAM policy conditions for fine-grained access
// control"), in lower case.
const (
	leadingKeys            = "dynamodb:leadingkeys"
	enclosingOperation     = "dynamodb:enclosingoperation"
	returnValues           = "dynamodb:returnvalues"
	returnConsumedCapacity = "dynamodb:returnconsumedcapacity"
	selected               = "dynamodb:select"
)

// unknownValue stands for the value of a condition key that this package can't read from the
// request.
const unknownValue = "\x00unknown"

// dynamoDB determines the permissions that calls of DynamoDB need.
type dynamoDB struct {
	partition map[string]string // name of the partition key, by table name or TABLE/index/INDEX
}

func newDynamoDB(tables []template.Table) *dynamoDB {
	d := &dynamoDB{partition: map[string]string{}}
	for _, t := range tables {
		d.partition[t.Name] = hashKey(t.Key)
		for _, index := range t.Indexes {
			d.partition[t.Name+"/index/"+index.Name] = hashKey(index.Key)
		}
	}
	return d
}

func hashKey(key []template.KeyPart) string {
	for _, part := range key {
		if part.Type == "HASH" {
			return part.Name
		}
	}
	return ""
}

// item holds the attributes of an item or a key, each as JSON.
type item map[string]json.RawMessage

// oneItem has the parameters of an operation on one item, or of an action in a transaction.
type oneItem struct {
	TableName    string
	Key          item
	Item         item
	ReturnValues string
}

// input has the parameters that permissions depend on, for all operations.
type input struct {
	oneItem
	IndexName                 string
	KeyConditionExpression    string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues item
	KeyConditions             map[string]struct{ AttributeValueList []json.RawMessage }
	Select                    string
	ProjectionExpression      string
	AttributesToGet           []string
	ReturnConsumedCapacity    string
	RequestItems              map[string]json.RawMessage
	TransactItems             []map[string]oneItem
	Statement                 string
	Statements                []struct{ Statement string }
	TransactStatements        []struct{ Statement string }
	StreamArn                 string
	ShardIterator             string
	ResourceArn               string
	TableArn                  string
}

// requests returns the permissions that a call needs, in the order in which they are checked.
func (d *dynamoDB) requests(operation, region, account string, body []byte) ([]Request, error) {
	var in input
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err //nolint:wrapcheck // the caller names the operation
	}
	call := dynamoDBCall{d, &in, operation, region, account}
	requests := call.requests()
	if in.ReturnConsumedCapacity != "" {
		for _, r := range requests {
			r.Keys[returnConsumedCapacity] = []string{in.ReturnConsumedCapacity}
		}
	}
	return requests, nil
}

// dynamoDBCall is one call of DynamoDB or DynamoDB Streams.
type dynamoDBCall struct {
	*dynamoDB
	in                         *input
	operation, region, account string
}

func (c *dynamoDBCall) requests() []Request {
	switch c.operation {
	case "GetItem", "PutItem", "UpdateItem", "DeleteItem":
		return []Request{c.one(c.operation, c.in.oneItem)}
	case "Query", "Scan":
		return []Request{c.many()}
	case "BatchGetItem", "BatchWriteItem":
		return c.batch()
	case "TransactGetItems", "TransactWriteItems":
		return c.transaction()
	case "ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction":
		return c.statements()
	case "DescribeStream", "GetShardIterator":
		return []Request{c.request(c.operation, c.stream(c.in.StreamArn))}
	case "GetRecords": // a shard iterator of DynamoDB Local contains the ARN of its stream
		_, arn, _ := strings.Cut(c.in.ShardIterator, "|")
		arn, _, _ = strings.Cut(arn, "|")
		return []Request{c.request(c.operation, c.stream(arn))}
	case "ListStreams":
		return []Request{c.request(c.operation, c.table(c.in.TableName)+"/stream/*")}
	}
	name := cmp.Or(c.in.TableArn, c.in.ResourceArn, c.in.TableName, "*") // * as in AWS's errors for ListTables
	return []Request{c.request(c.operation, c.table(name))}
}

func (c *dynamoDBCall) request(action, resource string) Request {
	return Request{Action: "dynamodb:" + action, Resource: resource, Keys: Keys{}}
}

// table returns the ARN of a table, given its name or ARN.
func (c *dynamoDBCall) table(name string) string {
	if strings.HasPrefix(name, "arn:") {
		return name
	}
	return template.ARN("dynamodb", c.region, c.account, "table/"+name)
}

// stream returns the ARN that the template has for a stream, given the ARN from DynamoDB Local,
// which has another Region, account and label.
func (c *dynamoDBCall) stream(arn string) string {
	return template.StreamARN(c.table(template.TableOfStream(arn)))
}

// tableName returns the name in a table's ARN, or the name itself.
func tableName(name string) string {
	if _, after, ok := strings.Cut(name, ":table/"); ok && strings.HasPrefix(name, "arn:") {
		return after
	}
	return name
}

// one returns the request for an operation on one item.
func (c *dynamoDBCall) one(action string, in oneItem) Request {
	r := c.request(action, c.table(in.TableName))
	key := in.Key
	if key == nil {
		key = in.Item
	}
	r.Keys[leadingKeys] = []string{c.leading(in.TableName, key)}
	if c.operation == action && action != "GetItem" {
		r.Keys[returnValues] = []string{cmp.Or(in.ReturnValues, "NONE")}
	}
	return r
}

// leading returns the value of the partition key in an item or key.
func (c *dynamoDBCall) leading(table string, from item) string {
	name, known := c.partition[tableName(table)]
	if !known && len(from) == 1 { // a key with one attribute
		for only := range from {
			name = only
		}
	}
	return value(from[name])
}

// value returns the text of a string, number or binary attribute, as it is in the request.
func value(attribute json.RawMessage) string {
	var typed map[string]json.RawMessage
	if json.Unmarshal(attribute, &typed) != nil || len(typed) != 1 {
		return unknownValue
	}
	for _, raw := range typed {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			return text
		}
	}
	return unknownValue
}

// many returns the request of a Query or a Scan. Only a Query has leading keys.
func (c *dynamoDBCall) many() Request {
	resource, place := c.table(c.in.TableName), tableName(c.in.TableName)
	whole := "ALL_ATTRIBUTES"
	if c.in.IndexName != "" {
		resource, place = resource+"/index/"+c.in.IndexName, place+"/index/"+c.in.IndexName
		whole = "ALL_PROJECTED_ATTRIBUTES"
	}
	if c.in.ProjectionExpression != "" || len(c.in.AttributesToGet) > 0 {
		whole = "SPECIFIC_ATTRIBUTES"
	}
	r := c.request(c.operation, resource)
	r.Keys[selected] = []string{cmp.Or(c.in.Select, whole)} // the defaults of the parameter Select
	if c.operation == "Query" {
		r.Keys[leadingKeys] = []string{c.queried(c.partition[place])}
	}
	return r
}

// equality matches "name = :value" in a KeyConditionExpression.
var equality = regexp.MustCompile(`([#\w.-]+)\s*=\s*(:\w+)`)

// queried returns the value of the partition key that a Query asks for.
func (c *dynamoDBCall) queried(partition string) string {
	if condition, ok := c.in.KeyConditions[partition]; ok && len(condition.AttributeValueList) == 1 {
		return value(condition.AttributeValueList[0])
	}
	for _, match := range equality.FindAllStringSubmatch(c.in.KeyConditionExpression, -1) {
		if name := cmp.Or(c.in.ExpressionAttributeNames[match[1]], match[1]); partition != "" && name == partition {
			return value(c.in.ExpressionAttributeValues[match[2]])
		}
	}
	return unknownValue
}

// batch returns one request for each table.
func (c *dynamoDBCall) batch() []Request {
	var all []Request
	for _, table := range slices.Sorted(maps.Keys(c.in.RequestItems)) {
		r := c.request(c.operation, c.table(table))
		var get struct{ Keys []item }
		var put []struct {
			PutRequest    struct{ Item item }
			DeleteRequest struct{ Key item }
		}
		if c.operation == "BatchGetItem" {
			_ = json.Unmarshal(c.in.RequestItems[table], &get) // if it can't be decoded, DynamoDB refuses the request
		} else {
			_ = json.Unmarshal(c.in.RequestItems[table], &put)
		}
		for _, key := range get.Keys {
			r.Keys[leadingKeys] = append(r.Keys[leadingKeys], c.leading(table, key))
		}
		for _, write := range put {
			key := write.PutRequest.Item
			if key == nil {
				key = write.DeleteRequest.Key
			}
			r.Keys[leadingKeys] = append(r.Keys[leadingKeys], c.leading(table, key))
		}
		all = append(all, r)
	}
	return all
}

// inTransaction maps an action of TransactGetItems or TransactWriteItems to the permission that it
// needs ("Using IAM with DynamoDB transactions"). The transaction itself needs no permission.
var inTransaction = map[string]string{
	"Get": "GetItem", "Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem",
}

func (c *dynamoDBCall) transaction() []Request {
	var all []Request
	for _, action := range c.in.TransactItems {
		for kind, in := range action {
			if name := inTransaction[kind]; name != "" {
				r := c.one(name, in)
				r.Keys[enclosingOperation] = []string{c.operation}
				all = append(all, r)
			}
		}
	}
	return all
}
