package iam_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lambdaidem/toolkit/localstack/iam"
)

// service answers every request with an empty JSON object, and records the requests.
type service struct {
	*httptest.Server
	mu      sync.Mutex
	arrived []*http.Request
	bodies  []string
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.arrived, s.bodies = append(s.arrived, r), append(s.bodies, string(body))
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(s.Close)
	return s
}

// world is a proxy in front of a service.
type world struct {
	*service
	checker *iam.Checker
	url     string
	said    *bytes.Buffer // the proxy's warnings
	http    *http.Client
}

func newWorld(t *testing.T, kind iam.Service, statements ...string) *world {
	t.Helper()
	w := &world{service: newService(t), checker: newChecker(t, statements...), said: &bytes.Buffer{}}
	proxy, err := w.checker.Start(kind, w.URL, "local", w.said)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	w.url, w.http = proxy.URL(), &http.Client{Transport: transport}
	return w
}

// config returns the configuration of a client of the proxy with an access key ID.
func (w *world) config(accessKeyID string) aws.Config {
	return aws.Config{Region: "us-east-1", BaseEndpoint: &w.url, HTTPClient: w.http, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(accessKeyID, "secret", "")}
}

func (w *world) dynamoDB(accessKeyID string) *dynamodb.Client {
	return dynamodb.NewFromConfig(w.config(accessKeyID), func(o *dynamodb.Options) { o.DisableValidateResponseChecksum = true })
}

// post sends a request as the function Shop does. target is empty in the query protocol.
func (w *world) post(t *testing.T, service, target, body string) (status int, header http.Header, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if target != "" {
		r.Header.Set("X-Amz-Target", target)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+iam.AccessKeyID("Shop")+"/20261126/us-east-1/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	resp, err := w.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	read, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(read)
}

func key(user string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"user": &types.AttributeValueMemberS{Value: user}, "order": &types.AttributeValueMemberN{Value: "1"}}
}

// The SDK reads a refusal as an error of DynamoDB, and the refused call doesn't reach the service.
func TestProxy_RefusesAsDynamoDBDoes(t *testing.T) {
	w := newWorld(t, iam.DynamoDB, "{Effect: Allow, Action: 'dynamodb:GetItem', Resource: !GetAtt Orders.Arn}")
	client := dynamodb.NewFromConfig(w.config(iam.AccessKeyID("Shop"))) // this client compares the checksum too
	for range 2 {
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("Orders"), Item: key("alice")})
		var api smithy.APIError
		var response *smithyhttp.ResponseError
		if !errors.As(err, &api) || api.ErrorCode() != "AccessDeniedException" || !errors.As(err, &response) || response.HTTPStatusCode() != 400 ||
			api.ErrorMessage() != "User: arn:aws:sts::000000000000:assumed-role/ShopRole/Shop is not authorized to perform: dynamodb:PutItem on resource: "+
				orders+" because no identity-based policy allows the dynamodb:PutItem action" {
			t.Fatalf("PutItem = %v", err)
		}
	}
	if len(w.arrived) > 0 {
		t.Error("the call reached the service")
	}
	if want := "iam: Shop was refused dynamodb:PutItem on " + orders + ": no statement of ShopRole has the action\n"; w.said.String() != want {
		t.Errorf("the proxy said %q; want %q, once", w.said, want)
	}
}

// A refusal has the checksum of its body. The SDK would only log a warning about a wrong checksum,
// and return no error.
func TestProxy_RefusalHasAChecksum(t *testing.T) {
	w := newWorld(t, iam.DynamoDB, "{Effect: Deny, Action: '*', Resource: '*'}")
	_, header, body := w.post(t, "dynamodb", "DynamoDB_20120810.DescribeTable", `{"TableName":"Orders"}`)
	if want := fmt.Sprint(crc32.ChecksumIEEE([]byte(body))); header.Get("X-Amz-Crc32") != want || !strings.Contains(body, "with an explicit deny in an identity-based policy") {
		t.Errorf("the answer is %v %s; want the checksum %s", header, body, want)
	}
}

func TestProxy_RefusesAsSQSDoes(t *testing.T) {
	w := newWorld(t, iam.SQS, "{Effect: Allow, Action: 'sqs:ReceiveMessage', Resource: !GetAtt Mails.Arn}")
	const message = "User: arn:aws:sts::000000000000:assumed-role/ShopRole/Shop is not authorized to perform: sqs:sendmessage on resource: " +
		mails + " because no identity-based policy allows the sqs:sendmessage action"
	queue := aws.String("http://127.0.0.1:9324/000000000000/Mails")
	_, err := sqs.NewFromConfig(w.config(iam.AccessKeyID("Shop"))).SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{
		QueueUrl: queue, Entries: []sqstypes.SendMessageBatchRequestEntry{{Id: aws.String("a"), MessageBody: aws.String("b")}},
	})
	var api smithy.APIError
	var response *smithyhttp.ResponseError
	if !errors.As(err, &api) || api.ErrorCode() != "AccessDenied" || api.ErrorMessage() != message || !errors.As(err, &response) || response.HTTPStatusCode() != 403 {
		t.Errorf("SendMessageBatch = %v", err)
	}

	// The query protocol, which older SDKs use.
	form := url.Values{"Action": {"SendMessage"}, "QueueUrl": {*queue}, "MessageBody": {"b"}}
	status, _, body := w.post(t, "sqs", "", form.Encode())
	want := `<ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>` + message + `</Message></Error></ErrorResponse>`
	if status != http.StatusForbidden || body != want {
		t.Errorf("the answer is %d %s", status, body)
	}
	if len(w.arrived) > 0 {
		t.Error("a call reached the service")
	}
}

// An allowed call arrives as it was sent, except for the access key ID. The proxy replaces the
// access key ID of the function by that of all other clients, because DynamoDB Local may give each
// access key ID its own tables.
func TestProxy_PassesCallsUnchanged(t *testing.T) {
	w := newWorld(t, iam.DynamoDB, "{Effect: Allow, Action: 'dynamodb:PutItem', Resource: !GetAtt Orders.Arn}")
	var sent string
	client := w.dynamoDB(iam.AccessKeyID("Shop"))
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("Orders"), Item: key("<&>")}, func(o *dynamodb.Options) {
		o.HTTPClient = recorded{o.HTTPClient, &sent}
	}); err != nil {
		t.Fatal(err)
	}
	if got := w.arrived[0].Header; got.Get("X-Amz-Target") != "DynamoDB_20120810.PutItem" || !strings.Contains(got.Get("Authorization"), "Credential=local/") ||
		!strings.Contains(got.Get("Authorization"), "Signature=") || w.bodies[0] != sent {
		t.Errorf("the service got %v %s; sent was %s", got, w.bodies[0], sent)
	}
}

type recorded struct {
	dynamodb.HTTPClient
	body *string
}

func (r recorded) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	*r.body, req.Body = string(body), io.NopCloser(bytes.NewReader(body))
	return r.HTTPClient.Do(req)
}

// The proxy does not check calls of clients that are not functions.
func TestProxy_PassesCallsOfOthers(t *testing.T) {
	w := newWorld(t, iam.DynamoDB, "{Effect: Deny, Action: '*', Resource: '*'}")
	for _, accessKeyID := range []string{"local", "Shop", iam.AccessKeyID("Shop2")} {
		if _, err := w.dynamoDB(accessKeyID).DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("Orders")}); err != nil {
			t.Errorf("%s: %v", accessKeyID, err)
		}
	}
	if len(w.arrived) != 3 || !strings.Contains(w.arrived[2].Header.Get("Authorization"), "Credential="+iam.AccessKeyID("Shop2")+"/") {
		t.Errorf("%d calls arrived, the last with %v", len(w.arrived), w.arrived[len(w.arrived)-1].Header)
	}
}

// The proxy passes a request on that it can't read, so that the service itself refuses it.
func TestProxy_PassesWhatItCannotRead(t *testing.T) {
	for name, test := range map[string]struct {
		kind                  iam.Service
		service, target, body string
	}{
		"no JSON":                 {iam.DynamoDB, "dynamodb", "DynamoDB_20120810.PutItem", "{"},
		"no operation":            {iam.DynamoDB, "dynamodb", "PutItem", "{}"},
		"no JSON for SQS":         {iam.SQS, "sqs", "AmazonSQS.SendMessage", "{"},
		"no form for SQS":         {iam.SQS, "sqs", "", "Action=SendMessage&%"},
		"no operation of SQS":     {iam.SQS, "sqs", "AmazonSQS", "{}"},
		"no Action in SQS's form": {iam.SQS, "sqs", "", "QueueName=Mails"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.kind, "{Effect: Deny, Action: '*', Resource: '*'}")
			w.post(t, test.service, test.target, test.body)
			if !slices.Equal(w.bodies, []string{test.body}) || !strings.Contains(w.arrived[0].Header.Get("Authorization"), "Credential=local/") {
				t.Errorf("%q arrived; want %q, with the access key ID of other clients", w.bodies, test.body)
			}
			if !strings.HasPrefix(w.said.String(), "iam: Shop sent a request that can't be read") {
				t.Errorf("the proxy said %q", w.said)
			}
		})
	}
}

// If the service is gone, the proxy breaks the connection, as the service would.
func TestProxy_BreaksTheConnectionIfTheServiceIsGone(t *testing.T) {
	w := newWorld(t, iam.DynamoDB, "{Effect: Allow, Action: 'dynamodb:*', Resource: '*'}")
	w.Close()
	_, err := w.dynamoDB(iam.AccessKeyID("Shop")).GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("Orders"), Key: key("alice")})
	var sent *smithyhttp.RequestSendError
	if !errors.As(err, &sent) {
		t.Errorf("GetItem = %v; want an error of the connection", err)
	}
}

// Each call of DynamoDB needs the permissions that AWS documents for it.
func TestProxy_PermissionsOfDynamoDB(t *testing.T) {
	name, other, statement := aws.String("Orders"), "arn:aws:dynamodb:us-east-1:111122223333:table/Other", aws.String
	both := map[string]types.AttributeValue{":u": &types.AttributeValueMemberS{Value: "alice"}, ":o": &types.AttributeValueMemberN{Value: "7"}}
	for what, test := range map[string]struct {
		call func(ctx context.Context, c *dynamodb.Client) error
		want []string // action, resource, leading keys, and further keys
	}{
		"GetItem": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.GetItem(ctx, &dynamodb.GetItemInput{TableName: name, Key: key("alice")})
			return err
		}, []string{"dynamodb:GetItem " + orders + " alice"}},
		"GetItem by an ARN": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.GetItem(ctx, &dynamodb.GetItemInput{TableName: &other, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberB{Value: []byte("x")}}})
			return err
		}, []string{"dynamodb:GetItem " + other + " eA=="}},
		"PutItem": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.PutItem(ctx, &dynamodb.PutItemInput{TableName: name, Item: key("bob"), ReturnValues: "ALL_OLD", ReturnConsumedCapacity: "TOTAL"})
			return err
		}, []string{"dynamodb:PutItem " + orders + " bob returnconsumedcapacity=TOTAL returnvalues=ALL_OLD"}},
		"UpdateItem": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: name, Key: key("bob")})
			return err
		}, []string{"dynamodb:UpdateItem " + orders + " bob returnvalues=NONE"}},
		"Query": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.Query(ctx, &dynamodb.QueryInput{TableName: name, KeyConditionExpression: aws.String("#o > :o AND #u=:u"),
				ExpressionAttributeNames: map[string]string{"#u": "user", "#o": "order"}, ExpressionAttributeValues: both})
			return err
		}, []string{"dynamodb:Query " + orders + " alice select=ALL_ATTRIBUTES"}},
		"Query of an index": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.Query(ctx, &dynamodb.QueryInput{TableName: name, IndexName: aws.String("byUser"), Select: "COUNT",
				KeyConditionExpression: aws.String("order = :o"), ExpressionAttributeValues: both})
			return err
		}, []string{"dynamodb:Query " + byUser + " 7 select=COUNT"}},
		"Query with KeyConditions": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.Query(ctx, &dynamodb.QueryInput{TableName: name, ProjectionExpression: aws.String("a"),
				KeyConditions: map[string]types.Condition{"user": {ComparisonOperator: "EQ", AttributeValueList: []types.AttributeValue{both[":u"]}}}})
			return err
		}, []string{"dynamodb:Query " + orders + " alice select=SPECIFIC_ATTRIBUTES"}},
		"Scan": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.Scan(ctx, &dynamodb.ScanInput{TableName: name, IndexName: aws.String("byUser")})
			return err
		}, []string{"dynamodb:Scan " + byUser + "  select=ALL_PROJECTED_ATTRIBUTES"}},
		"BatchGetItem": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
				"Orders": {Keys: []map[string]types.AttributeValue{key("alice"), key("bob")}}, other: {Keys: []map[string]types.AttributeValue{{"id": both[":o"]}}}}})
			return err
		}, []string{"dynamodb:BatchGetItem " + orders + " alice,bob", "dynamodb:BatchGetItem " + other + " 7"}},
		"BatchWriteItem": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{
				"Orders": {{PutRequest: &types.PutRequest{Item: key("alice")}}, {DeleteRequest: &types.DeleteRequest{Key: key("bob")}}}}})
			return err
		}, []string{"dynamodb:BatchWriteItem " + orders + " alice,bob"}},
		"TransactWriteItems": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
				{Put: &types.Put{TableName: name, Item: key("a")}},
				{Update: &types.Update{TableName: name, Key: key("b"), UpdateExpression: aws.String("SET x = :u")}},
				{Delete: &types.Delete{TableName: name, Key: key("c")}},
				{ConditionCheck: &types.ConditionCheck{TableName: name, Key: key("d"), ConditionExpression: aws.String("x = :u")}},
			}})
			return err
		}, []string{
			"dynamodb:ConditionCheckItem " + orders + " d enclosingoperation=TransactWriteItems", "dynamodb:DeleteItem " + orders + " c enclosingoperation=TransactWriteItems",
			"dynamodb:PutItem " + orders + " a enclosingoperation=TransactWriteItems", "dynamodb:UpdateItem " + orders + " b enclosingoperation=TransactWriteItems",
		}},
		"TransactGetItems": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{{Get: &types.Get{TableName: name, Key: key("a")}}}})
			return err
		}, []string{"dynamodb:GetItem " + orders + " a enclosingoperation=TransactGetItems"}},
		"DescribeTimeToLive": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: name})
			return err
		}, []string{"dynamodb:DescribeTimeToLive " + orders + " "}},
		"ListTables": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.ListTables(ctx, &dynamodb.ListTablesInput{})
			return err
		}, []string{"dynamodb:ListTables arn:aws:dynamodb:us-east-1:000000000000:table/* "}},
		"TagResource": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.TagResource(ctx, &dynamodb.TagResourceInput{ResourceArn: &other, Tags: []types.Tag{{Key: name, Value: name}}})
			return err
		}, []string{"dynamodb:TagResource " + other + " "}},
		"a PartiQL SELECT": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.ExecuteStatement(ctx, &dynamodb.ExecuteStatementInput{Statement: statement(`select * from "Orders"."byUser" where "user" = 'a'`)})
			return err
		}, []string{"dynamodb:PartiQLSelect " + byUser + " ?"}},
		"PartiQL in a transaction": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.ExecuteTransaction(ctx, &dynamodb.ExecuteTransactionInput{TransactStatements: []types.ParameterizedStatement{
				{Statement: statement(`INSERT INTO "Orders" VALUE {'user':'a'}`)}, {Statement: statement(`DELETE FROM Orders WHERE "user"='a'`)}, {Statement: statement("UPDATE Orders\nSET x=1")},
			}})
			return err
		}, []string{
			"dynamodb:PartiQLDelete " + orders + " ? enclosingoperation=ExecuteTransaction", "dynamodb:PartiQLInsert " + orders + " ? enclosingoperation=ExecuteTransaction",
			"dynamodb:PartiQLUpdate " + orders + " ? enclosingoperation=ExecuteTransaction",
		}},
		"PartiQL that can't be read": {func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.BatchExecuteStatement(ctx, &dynamodb.BatchExecuteStatementInput{Statements: []types.BatchStatementRequest{{Statement: statement("-- what?")}}})
			return err
		}, []string{"dynamodb:PartiQLSelect arn:aws:dynamodb:us-east-1:000000000000:table/* "}},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, iam.DynamoDB, "{Effect: Allow, Action: 'dynamodb:*', Resource: '*'}")
			if err := test.call(t.Context(), w.dynamoDB(iam.AccessKeyID("Shop"))); err != nil {
				t.Fatal(err)
			}
			if got := uses(w.checker); !slices.Equal(got, test.want) {
				t.Errorf("it needs %q; want %q", got, test.want)
			}
		})
	}
}

// uses returns the counted requests, each as action, resource, leading keys, and other keys.
func uses(checker *iam.Checker) []string {
	var all []string
	for _, use := range checker.Uses() {
		text := use.Request.Action + " " + use.Request.Resource + " " + strings.ReplaceAll(strings.Join(use.Request.Keys["dynamodb:leadingkeys"], ","), "\x00unknown", "?")
		for _, name := range []string{"enclosingoperation", "returnconsumedcapacity", "returnvalues", "select"} {
			if values := use.Request.Keys["dynamodb:"+name]; len(values) > 0 {
				text += " " + name + "=" + strings.Join(values, ",")
			}
		}
		all = append(all, text)
	}
	return all
}

// A function that reads a stream itself needs permissions for the stream that its policies name.
func TestProxy_PermissionsOfStreams(t *testing.T) {
	w := newWorld(t, iam.DynamoDB, "{Effect: Allow, Action: 'dynamodb:*', Resource: '*'}")
	client := dynamodbstreams.NewFromConfig(w.config(iam.AccessKeyID("Shop")))
	arn := aws.String("arn:aws:dynamodb:ddblocal:000000000000:table/Orders/stream/2026-11-26T13:00:00.000")
	_, described := client.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
	_, read := client.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: aws.String("000|" + *arn + "|abc")})
	_, listed := client.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{TableName: aws.String("Orders")})
	if err := errors.Join(described, read, listed); err != nil {
		t.Fatal(err)
	}
	want := []string{"dynamodb:DescribeStream " + stream + " ", "dynamodb:GetRecords " + stream + " ", "dynamodb:ListStreams " + orders + "/stream/* "}
	if got := uses(w.checker); !slices.Equal(got, want) {
		t.Errorf("they need %q; want %q", got, want)
	}
}

// A transaction needs every permission of its actions.
func TestProxy_RefusesATransactionForOneAction(t *testing.T) {
	w := newWorld(t, iam.DynamoDB, "{Effect: Allow, Action: 'dynamodb:PutItem', Resource: '*'}")
	_, err := w.dynamoDB(iam.AccessKeyID("Shop")).TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: aws.String("Orders"), Item: key("a")}}, {Delete: &types.Delete{TableName: aws.String("Orders"), Key: key("c")}},
	}})
	if err == nil || !strings.Contains(err.Error(), "no identity-based policy allows the dynamodb:DeleteItem action") || len(w.arrived) > 0 {
		t.Errorf("TransactWriteItems = %v, and %d calls arrived", err, len(w.arrived))
	}
	for _, p := range w.checker.Permissions() {
		if p.Used > 0 {
			t.Errorf("%s counts as used by a call that was refused", p.Action)
		}
	}
}

// Each call of SQS needs the permissions that AWS documents for it.
func TestProxy_PermissionsOfSQS(t *testing.T) {
	w := newWorld(t, iam.SQS, "{Effect: Allow, Action: 'sqs:*', Resource: '*'}")
	client := sqs.NewFromConfig(w.config(iam.AccessKeyID("Shop")))
	queue, dead := aws.String("http://127.0.0.1:9324/000000000000/Mails"), aws.String(mails+"Dead")
	var errs []error
	_, err := client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("Mails")})
	errs = append(errs, err)
	_, err = client.ChangeMessageVisibilityBatch(t.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: queue, Entries: []sqstypes.ChangeMessageVisibilityBatchRequestEntry{}})
	errs = append(errs, err)
	_, err = client.ListQueues(t.Context(), &sqs.ListQueuesInput{})
	errs = append(errs, err)
	_, err = client.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: dead, DestinationArn: aws.String(mails)})
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"sqs:ChangeMessageVisibility " + mails + " ", "sqs:DeleteMessage " + mails + "Dead ", "sqs:GetQueueAttributes " + mails + "Dead ",
		"sqs:GetQueueUrl " + mails + " ", "sqs:ListQueues arn:aws:sqs:us-east-1:000000000000: ", "sqs:ReceiveMessage " + mails + "Dead ",
		"sqs:SendMessage " + mails + " ", "sqs:StartMessageMoveTask " + mails + "Dead ",
	}
	if got := uses(w.checker); !slices.Equal(got, want) {
		t.Errorf("they need %q; want %q", got, want)
	}
}

// The leading keys of a PartiQL statement are unknown, so a condition on them is undecided.
func TestProxy_DoesNotDecideAboutTheKeysOfPartiQL(t *testing.T) {
	w := newWorld(t, iam.DynamoDB, "{Effect: Allow, Action: 'dynamodb:PartiQL*', Resource: '*', Condition: {'ForAllValues:StringEquals': {'dynamodb:LeadingKeys': alice}}}")
	if _, err := w.dynamoDB(iam.AccessKeyID("Shop")).ExecuteStatement(t.Context(), &dynamodb.ExecuteStatementInput{
		Statement: aws.String(`DELETE FROM "Orders" WHERE "user"='bob'`)}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(w.said.String(), "AWS may refuse it: template.yaml:8:15: the condition ForAllValues:StringEquals dynamodb:LeadingKeys") {
		t.Errorf("the proxy said %q", w.said)
	}
}

// The proxy warns about the first call that AWS may refuse, and not about the same call again.
func TestProxy_SaysWhatItCannotDecide(t *testing.T) {
	w := newWorld(t, iam.DynamoDB, "{Effect: Allow, Action: 'dynamodb:*', Resource: '*', Condition: {StringEquals: {'aws:PrincipalOrgID': o-1}}}")
	for range 2 {
		if _, err := w.dynamoDB(iam.AccessKeyID("Shop")).GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("Orders"), Key: key("a")}); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.said.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "iam: Shop was allowed dynamodb:GetItem on "+orders+", but AWS may refuse it: template.yaml:8:15: the condition StringEquals aws:PrincipalOrgID") {
		t.Errorf("the proxy said %q", got)
	}
}
