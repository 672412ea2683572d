package memdynamo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

var (
	seedFlag  = flag.Uint64("memdynamo.seed", 1, "seed of the differential test against DynamoDB Local")
	itemsFlag = flag.Int("memdynamo.items", 300, "items of the differential test, each put to a dozen requests")
)

// pair has clients for memdynamo and for DynamoDB Local, with one table of the same name in both.
type pair struct {
	fake, real *dynamodb.Client
	table      string
}

func newPair(t *testing.T) *pair {
	t.Helper()
	once := func(o *dynamodb.Options) { o.Retryer, o.HTTPClient = aws.NopRetryer{}, inMemory{o.HTTPClient} }
	db := memdynamo.New(time.Now)
	p := &pair{
		fake: dynamodb.New(dynamodb.Options{
			Region: "us-east-1", HTTPClient: &memdynamo.Client{DB: db},
			Credentials: credentials.NewStaticCredentialsProvider("fake", "fake", ""),
		}, once),
		real:  ddblocal.ForTest(t).Client(once),
		table: fmt.Sprintf("memdynamo-%s-%d", strings.ToLower(t.Name()), time.Now().UnixNano()),
	}
	for _, client := range []*dynamodb.Client{p.fake, p.real} {
		_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: &p.table, BillingMode: types.BillingModePayPerRequest,
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if _, err := p.real.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: &p.table}); err != nil {
			t.Errorf("delete table %s: %v", p.table, err)
		}
	})
	return p
}

// inMemory is an HTTP client that gives net/http the bodies of requests in a form that net/http
// recognizes as in memory. With the SDK's own bodies, a connection is sometimes closed in the
// middle of a longer reply (aws-sdk-go-v2, issue 2737), and these tests don't retry.
type inMemory struct{ dynamodb.HTTPClient }

func (m inMemory) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read the request's body: %w", err)
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return m.HTTPClient.Do(r) //nolint:wrapcheck // the client's own
}

type attributes = map[string]types.AttributeValue

// request is one operation on the test's only item.
type request struct {
	op           string // PutItem, UpdateItem, DeleteItem, GetItem
	item         attributes
	condition    *tree
	update       []clause
	returnValues string
	old          bool // ReturnValuesOnConditionCheckFailure = ALL_OLD
	projection   []string
}

// clause is one action of an update, as text.
type clause struct{ section, path, rest string }

func (c clause) String() string { return c.path + c.rest }

// tree is a condition: either text without operators, or an operator (AND, OR, NOT or
// parentheses) with its operands kids.
type tree struct {
	op   string
	text string
	kids []*tree
}

func (t *tree) String() string {
	switch t.op {
	case "NOT":
		return "NOT " + t.kids[0].String()
	case "()":
		return "(" + t.kids[0].String() + ")"
	case "":
		return t.text
	}
	return t.kids[0].String() + " " + t.op + " " + t.kids[1].String()
}

func (r request) updateExpression() string {
	var parts []string
	for _, section := range []string{"SET", "REMOVE", "ADD", "DELETE"} {
		var actions []string
		for _, c := range r.update {
			if c.section == section {
				actions = append(actions, c.String())
			}
		}
		if actions != nil {
			parts = append(parts, section+" "+strings.Join(actions, ", "))
		}
	}
	return strings.Join(parts, " ")
}

// String returns the request in a readable form.
func (r request) String() string {
	var b strings.Builder
	b.WriteString(r.op)
	if r.item != nil {
		b.WriteString("\n  item       " + show(r.item))
	}
	if r.update != nil {
		b.WriteString("\n  update     " + r.updateExpression())
	}
	if r.condition != nil {
		b.WriteString("\n  condition  " + r.condition.String())
	}
	if r.projection != nil {
		b.WriteString("\n  projection " + strings.Join(r.projection, ", "))
	}
	if names := r.names(); names != nil {
		_, _ = fmt.Fprintf(&b, "\n  names      %v", names)
	}
	if values := r.values(); values != nil {
		b.WriteString("\n  values     " + show(values))
	}
	_, _ = fmt.Fprintf(&b, "\n  return     %q, ALL_OLD on failure: %v", r.returnValues, r.old)
	return b.String()
}

func (r request) expressions() string {
	text := r.updateExpression() + " " + strings.Join(r.projection, " ")
	if r.condition != nil {
		text += " " + r.condition.String()
	}
	return text
}

var placeholder = regexp.MustCompile(`[:#][a-z]\w*`)

// names and values return definitions for the placeholders in the expressions. Placeholders that
// are not in the pool stay undefined on purpose.
func (r request) names() map[string]string {
	var names map[string]string
	for _, p := range placeholder.FindAllString(r.expressions(), -1) {
		if name, ok := aliasPool[p]; ok {
			if names == nil {
				names = map[string]string{}
			}
			names[p] = name
		}
	}
	return names
}

func (r request) values() attributes {
	var values attributes
	for _, p := range placeholder.FindAllString(r.expressions(), -1) {
		if v, ok := valuePool[p]; ok {
			if values == nil {
				values = attributes{}
			}
			values[p] = v
		}
	}
	return values
}

var key = attributes{"id": s("k")}

// outcome is the reply to a request, in a form that can be compared.
type outcome struct {
	code, message string
	attributes    string // Attributes, or the Item of a get or a failed condition
	units         float64
}

func (p *pair) do(ctx context.Context, client *dynamodb.Client, r request) outcome {
	var conditionText, updateText, projectionText *string
	if r.condition != nil {
		conditionText = aws.String(r.condition.String())
	}
	if r.update != nil {
		updateText = aws.String(r.updateExpression())
	}
	if r.projection != nil {
		projectionText = aws.String(strings.Join(r.projection, ", "))
	}
	onFailure := types.ReturnValuesOnConditionCheckFailureNone
	if r.old {
		onFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	}
	const total = types.ReturnConsumedCapacityTotal
	switch r.op {
	case "PutItem":
		out, err := client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &p.table, Item: r.item, ConditionExpression: conditionText,
			ExpressionAttributeNames: r.names(), ExpressionAttributeValues: r.values(),
			ReturnValues: types.ReturnValue(r.returnValues), ReturnValuesOnConditionCheckFailure: onFailure, ReturnConsumedCapacity: total,
		})
		if err != nil {
			return failure(err)
		}
		return outcome{attributes: show(out.Attributes), units: *out.ConsumedCapacity.CapacityUnits}
	case "UpdateItem":
		out, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &p.table, Key: key, ConditionExpression: conditionText, UpdateExpression: updateText,
			ExpressionAttributeNames: r.names(), ExpressionAttributeValues: r.values(),
			ReturnValues: types.ReturnValue(r.returnValues), ReturnValuesOnConditionCheckFailure: onFailure, ReturnConsumedCapacity: total,
		})
		if err != nil {
			return failure(err)
		}
		return outcome{attributes: show(out.Attributes), units: *out.ConsumedCapacity.CapacityUnits}
	case "DeleteItem":
		out, err := client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: &p.table, Key: key, ConditionExpression: conditionText,
			ExpressionAttributeNames: r.names(), ExpressionAttributeValues: r.values(),
			ReturnValues: types.ReturnValue(r.returnValues), ReturnValuesOnConditionCheckFailure: onFailure, ReturnConsumedCapacity: total,
		})
		if err != nil {
			return failure(err)
		}
		return outcome{attributes: show(out.Attributes), units: *out.ConsumedCapacity.CapacityUnits}
	default:
		out, err := client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &p.table, Key: key, ConsistentRead: aws.Bool(true), ProjectionExpression: projectionText,
			ExpressionAttributeNames: r.names(), ReturnConsumedCapacity: total,
		})
		if err != nil {
			return failure(err)
		}
		return outcome{attributes: show(out.Item), units: *out.ConsumedCapacity.CapacityUnits}
	}
}

func failure(err error) outcome {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return outcome{code: failed.ErrorCode(), message: failed.ErrorMessage(), attributes: show(failed.Item)}
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		return outcome{code: api.ErrorCode(), message: api.ErrorMessage()}
	}
	return outcome{code: "not an answer", message: err.Error()}
}

// worded returns the same text for all messages that are considered equal. A random request can
// be wrong in several places, and there is no known rule for which of them the message names. The
// tables of observed replies check the exact wording.
func worded(message string) string {
	if kind, _, ok := strings.Cut(message, "Expression: "); ok && strings.HasPrefix(kind, "Invalid ") {
		return kind + "Expression"
	}
	for _, m := range []string{
		"An operand in the update expression has an incorrect data type",
		"The provided expression refers to an attribute that does not exist in the item",
		"The document path provided in the update expression is invalid for update",
		"DynamoDB only supports precision up to 38 digits",
		"Attempting to store more than 38 significant digits in a Number",
	} {
		if message == m {
			return "the update does not fit the item"
		}
	}
	return message
}

// set stores the item before in both databases, or deletes it if before is nil.
func (p *pair) set(t *testing.T, before attributes) {
	t.Helper()
	r := request{op: "DeleteItem"}
	if before != nil {
		r = request{op: "PutItem", item: before}
	}
	for _, client := range []*dynamodb.Client{p.fake, p.real} {
		if o := p.do(t.Context(), client, r); o.code != "" {
			t.Fatalf("%v: %s %s", r, o.code, o.message)
		}
	}
}

// compare sends the request to both databases and describes how they differ, in the reply or in
// the item afterwards. The result difference is empty if they agree. after is the item
// afterwards.
func (p *pair) compare(ctx context.Context, before attributes, r request) (answer outcome, after attributes, difference string) {
	fake, local := p.do(ctx, p.fake, r), p.do(ctx, p.real, r)
	answer = fake
	fake.message, local.message = worded(fake.message), worded(local.message)
	if fake != local {
		return answer, nil, fmt.Sprintf("the answer\n  memdynamo %+v\n  local %+v", fake, local)
	}
	out, err := p.fake.GetItem(ctx, &dynamodb.GetItemInput{TableName: &p.table, Key: key})
	if err != nil {
		return answer, nil, err.Error()
	}
	changed := show(out.Item) != show(before)
	if fake.code != "" && changed {
		return answer, nil, "the item, which a refused request changed\n  memdynamo " + show(out.Item) + "\n  was   " + show(before)
	}
	if !changed { // a change in DynamoDB Local would show in a later request
		return answer, before, ""
	}
	fake, local = p.do(ctx, p.fake, request{op: "GetItem"}), p.do(ctx, p.real, request{op: "GetItem"})
	if fake != local {
		return answer, nil, fmt.Sprintf("the item afterwards\n  memdynamo %+v\n  local %+v", fake, local)
	}
	return answer, out.Item, ""
}

// TestDifferential sends random requests on random items to memdynamo and to DynamoDB Local.
// Errors with their messages, returned attributes, consumed capacity and the item afterwards must
// agree. Known differences (see the package documentation) are not generated. To test other seeds
// or more items:
//
//	go test -run Differential ./internal/memdynamo -args -memdynamo.seed=2 -memdynamo.items=3000
func TestDifferential(t *testing.T) {
	p := newPair(t)
	g := generator{rand.New(rand.NewPCG(*seedFlag, 0))}
	outcomes := map[string]int{}
	for range *itemsFlag {
		before := g.item()
		p.set(t, before)
		for range 12 {
			r := g.request(before)
			answer, after, difference := p.compare(t.Context(), before, r)
			if difference != "" {
				before, r, difference = p.shrink(t, before, r, difference)
				t.Fatalf("seed %d: memdynamo and DynamoDB Local differ in %s\nitem before %s\n%v", *seedFlag, difference, show(before), r)
			}
			switch {
			case r.condition == nil:
				outcomes["without"]++
			case answer.code == "":
				outcomes["held"]++
			case answer.code == memdynamo.ConditionalCheckFailed:
				outcomes["failed"]++
			default:
				outcomes["refused"]++
			}
			before = after
		}
	}
	t.Logf("seed %d: conditions: %d held, %d failed, %d refused with their request; requests without: %d", *seedFlag,
		outcomes["held"], outcomes["failed"], outcomes["refused"], outcomes["without"])
	for _, kind := range []string{"held", "failed", "refused", "without"} {
		if outcomes[kind] == 0 {
			t.Errorf("the generator made no request of the kind %q", kind)
		}
	}
}

// shrink returns a smaller item and request that still differ, as small as it can find.
func (p *pair) shrink(t *testing.T, before attributes, r request, difference string) (attributes, request, string) {
	t.Helper()
	differs := func(before attributes, r request) string {
		if knownToDiffer(before, r) {
			return ""
		}
		p.set(t, before)
		_, _, d := p.compare(t.Context(), before, r)
		return d
	}
	for smaller := true; smaller; {
		smaller = false
		for _, candidate := range smallerRequests(r) {
			if d := differs(before, candidate); d != "" {
				r, difference, smaller = candidate, d, true
				break
			}
		}
		for name := range before {
			if name == "id" {
				continue
			}
			less := attributes{}
			for n, v := range before {
				if n != name {
					less[n] = v
				}
			}
			if d := differs(less, r); d != "" {
				before, difference, smaller = less, d, true
				break
			}
		}
	}
	return before, r, difference
}

func smallerRequests(r request) []request {
	var out []request
	add := func(change func(*request)) {
		c := r
		change(&c)
		out = append(out, c)
	}
	if r.condition != nil {
		if len(r.update) > 0 || r.op != "UpdateItem" {
			add(func(c *request) { c.condition = nil })
		}
		for _, kid := range r.condition.smaller() {
			add(func(c *request) { c.condition = kid })
		}
	}
	for i := range r.update {
		if len(r.update) > 1 {
			add(func(c *request) { c.update = slices.Delete(slices.Clone(r.update), i, i+1) })
		}
	}
	for i := range r.projection {
		if len(r.projection) > 1 {
			add(func(c *request) { c.projection = slices.Delete(slices.Clone(r.projection), i, i+1) })
		}
	}
	if r.returnValues != "" {
		add(func(c *request) { c.returnValues = "" })
	}
	if r.old {
		add(func(c *request) { c.old = false })
	}
	return out
}

// smaller returns the trees that result if one operator is replaced by one of its operands.
func (t *tree) smaller() []*tree {
	out := slices.Clone(t.kids)
	for i, kid := range t.kids {
		for _, less := range kid.smaller() {
			kids := slices.Clone(t.kids)
			kids[i] = less
			out = append(out, &tree{op: t.op, kids: kids})
		}
	}
	return out
}

// TestObservedHolds checks that DynamoDB Local still replies as the tables of the unit tests say.
func TestObservedHolds(t *testing.T) {
	p := newPair(t)
	var item memdynamo.Item
	if err := json.Unmarshal([]byte(observedItem), &item); err != nil {
		t.Fatal(err)
	}
	before := toSDK(item)
	check := func(o observed, parameter, prefix string) {
		var values map[string]memdynamo.Value
		if o.values != "" {
			if err := json.Unmarshal([]byte(o.values), &values); err != nil {
				t.Fatal(err)
			}
		}
		put := &dynamodb.PutItemInput{TableName: &p.table, Item: before}
		if _, err := p.real.PutItem(t.Context(), put); err != nil {
			t.Fatal(err)
		}
		in := &dynamodb.UpdateItemInput{TableName: &p.table, Key: attributes{"id": before["id"]}, ReturnValues: types.ReturnValueAllNew}
		if o.values != "" {
			in.ExpressionAttributeValues = toSDK(values)
		}
		if parameter == "condition" {
			in.ConditionExpression = &o.expression
		} else {
			in.UpdateExpression = &o.expression
		}
		out, err := p.real.UpdateItem(t.Context(), in)
		var got string
		if err != nil {
			f := failure(err)
			got = strings.TrimPrefix(f.message, prefix)
			if f.code == memdynamo.ConditionalCheckFailed {
				got = "false"
			}
		} else if got = "true"; parameter == "update" {
			got = difference(item, fromSDK(out.Attributes))
		}
		if got != o.want {
			t.Errorf("%q %s\nLocal %s\n want %s", o.expression, o.values, got, o.want)
		}
	}
	for _, o := range observedConditions {
		if !unsendable(o.values) {
			check(o, "condition", "Invalid ConditionExpression: ")
		}
	}
	for _, o := range observedUpdates {
		check(o, "update", "Invalid UpdateExpression: ")
	}
}

// unsendable reports whether the values can't be expressed with the SDK's types, because one has
// no type or two.
func unsendable(values string) bool {
	return strings.Contains(values, "{}}") && !strings.Contains(values, `"M": {}}`) ||
		strings.Contains(values, "[{}]") || strings.Contains(values, `"S": "a", "N"`)
}

// show returns attributes as text that is equal for equal attributes: names and sets in order,
// and numbers by value.
func show(a attributes) string {
	if a == nil {
		return "nothing"
	}
	return fromSDK(a).String()
}

func fromSDK(a attributes) memdynamo.Item {
	item := memdynamo.Item{}
	for name, v := range a {
		item[name] = valueFromSDK(v)
	}
	return item
}

func valueFromSDK(v types.AttributeValue) memdynamo.Value {
	set := func(typ string, elements []string) memdynamo.Value {
		slices.Sort(elements)
		return memdynamo.Value{Type: typ, Set: elements}
	}
	byValue := func(a, b string) int {
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		return x.Cmp(y)
	}
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return memdynamo.String(v.Value)
	case *types.AttributeValueMemberN:
		return memdynamo.Value{Type: memdynamo.TypeNumber, Text: plain(v.Value)}
	case *types.AttributeValueMemberB:
		return memdynamo.Value{Type: memdynamo.TypeBinary, Text: string(v.Value)}
	case *types.AttributeValueMemberBOOL:
		return memdynamo.Value{Type: memdynamo.TypeBool, Bool: v.Value}
	case *types.AttributeValueMemberNULL:
		return memdynamo.Value{Type: memdynamo.TypeNull, Bool: v.Value}
	case *types.AttributeValueMemberL:
		out := memdynamo.Value{Type: memdynamo.TypeList}
		for _, e := range v.Value {
			out.List = append(out.List, valueFromSDK(e))
		}
		return out
	case *types.AttributeValueMemberM:
		return memdynamo.Value{Type: memdynamo.TypeMap, Map: fromSDK(v.Value)}
	case *types.AttributeValueMemberSS:
		return set(memdynamo.TypeStringSet, slices.Clone(v.Value))
	case *types.AttributeValueMemberNS:
		var elements []string
		for _, e := range v.Value {
			elements = append(elements, plain(e))
		}
		slices.SortFunc(elements, byValue)
		return memdynamo.Value{Type: memdynamo.TypeNumberSet, Set: elements}
	case *types.AttributeValueMemberBS:
		var elements []string
		for _, e := range v.Value {
			elements = append(elements, string(e))
		}
		return set(memdynamo.TypeBinarySet, elements)
	}
	panic(fmt.Sprintf("no such attribute value: %T", v))
}

// plain returns a number's text in a form that is the same for equal values. It doesn't use the
// code of memdynamo.
func plain(text string) string {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return text
	}
	decimal := r.FloatString(170) // more places than any number has
	return strings.TrimSuffix(strings.TrimRight(decimal, "0"), ".")
}

func toSDK(item map[string]memdynamo.Value) attributes {
	out := attributes{}
	for name, v := range item {
		out[name] = valueToSDK(v)
	}
	return out
}

func valueToSDK(v memdynamo.Value) types.AttributeValue {
	switch v.Type {
	case memdynamo.TypeString:
		return &types.AttributeValueMemberS{Value: v.Text}
	case memdynamo.TypeNumber:
		return &types.AttributeValueMemberN{Value: v.Text}
	case memdynamo.TypeBinary:
		return &types.AttributeValueMemberB{Value: []byte(v.Text)}
	case memdynamo.TypeBool:
		return &types.AttributeValueMemberBOOL{Value: v.Bool}
	case memdynamo.TypeNull:
		return &types.AttributeValueMemberNULL{Value: v.Bool}
	case memdynamo.TypeList:
		list := []types.AttributeValue{}
		for _, e := range v.List {
			list = append(list, valueToSDK(e))
		}
		return &types.AttributeValueMemberL{Value: list}
	case memdynamo.TypeMap:
		return &types.AttributeValueMemberM{Value: toSDK(v.Map)}
	case memdynamo.TypeStringSet:
		return &types.AttributeValueMemberSS{Value: append([]string{}, v.Set...)}
	case memdynamo.TypeNumberSet:
		return &types.AttributeValueMemberNS{Value: v.Set}
	case memdynamo.TypeBinarySet:
		var set [][]byte
		for _, e := range v.Set {
			set = append(set, []byte(e))
		}
		return &types.AttributeValueMemberBS{Value: set}
	}
	panic("no such type: " + v.Type)
}
