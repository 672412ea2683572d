package queue_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/localstack/queue"
)

// post sends what a client sends.
func post(h http.Handler, target, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "http://sqs.local:9324/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", target)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// "AWS JSON 1.0 protocol" and "AWS query compatible" of the Smithy documentation.
func TestHTTP_ErrorsOnTheWire(t *testing.T) {
	s := queue.New(queue.Options{})
	w := post(s, "AmazonSQS.GetQueueUrl", `{"QueueName":"nowhere"}`)
	expect(t, "status", w.Code, http.StatusBadRequest)
	expect(t, "type", w.Header().Get("Content-Type"), "application/x-amz-json-1.0")
	expect(t, "query error", w.Header().Get("X-Amzn-Query-Error"), "AWS.SimpleQueueService.NonExistentQueue;Sender")
	expect(t, "request id", len(w.Header().Get("X-Amzn-Requestid")), 36)
	expect(t, "body", strings.TrimSpace(w.Body.String()), `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}`)
}

func TestHTTP_Refusals(t *testing.T) {
	s := queue.New(queue.Options{})
	create(t, s, "orders", nil)
	const url = `"QueueUrl":"http://x/000000000000/orders"`
	for _, c := range []struct{ target, body, want string }{
		{"AmazonSQS.Nothing", `{}`, "InvalidAction;Sender"},
		{"SendMessage", `{}`, "InvalidAction;Sender"},
		{"", `{}`, "InvalidAction;Sender"},
		{"AmazonSQS.TagQueue", `{}`, "AWS.SimpleQueueService.UnsupportedOperation;Sender"},
		{"AmazonSQS.SendMessage", `{`, "MalformedInput;Sender"},
		{"AmazonSQS.SendMessage", `{} {}`, "MalformedInput;Sender"},
		{"AmazonSQS.SendMessage", `[]`, "MalformedInput;Sender"},
		{"AmazonSQS.SendMessage", `{"MessageBody":1}`, "MalformedInput;Sender"},
		{"AmazonSQS.SendMessage", "{\"MessageBody\":\"\xff\"}", "MalformedInput;Sender"},
		{"AmazonSQS.SendMessage", ``, "MissingParameter;Sender"},
		{"AmazonSQS.SendMessage", `{"MessageBody":"x"}`, "MissingParameter;Sender"},
		{"AmazonSQS.SendMessage", `{"QueueUrl":"orders","MessageBody":"x"}`, "InvalidAddress;Sender"},
		{"AmazonSQS.SendMessage", `{"QueueUrl":"http://x/1/orders","MessageBody":"x"}`, "AWS.SimpleQueueService.NonExistentQueue;Sender"},
		{"AmazonSQS.SendMessage", `{` + url + `,"MessageBody":"x","MessageSystemAttributes":{"Other":{"DataType":"String","StringValue":"x"}}}`, "InvalidParameterValue;Sender"},
		{"AmazonSQS.SendMessage", `{` + url + `,"MessageBody":"x","MessageAttributes":{"a":{"DataType":"String","StringValue":"x","BinaryValue":"eA=="}}}`, "InvalidParameterValue;Sender"},
		{"AmazonSQS.SendMessage", `{` + url + `,"MessageBody":"x","MessageAttributes":{"a":{"DataType":"Number","StringValue":"0x1p4"}}}`, "InvalidParameterValue;Sender"},
		{"AmazonSQS.SendMessage", `{` + url + `,"MessageBody":"x","MessageAttributes":{"a":{"DataType":"String","StringValue":"\u0000"}}}`, "InvalidMessageContents;Sender"},
		{"AmazonSQS.SendMessage", `{` + url + `,"MessageBody":"x","DelaySeconds":-1}`, "InvalidParameterValue;Sender"},
		{"AmazonSQS.SendMessage", `{` + url + `,"MessageBody":"x","DelaySeconds":9223372036854775807}`, "InvalidParameterValue;Sender"},
		{"AmazonSQS.SendMessage", `{` + url + `,"MessageBody":"x","MessageGroupId":"a b"}`, "InvalidParameterValue;Sender"},
		{"AmazonSQS.ReceiveMessage", `{` + url + `,"MaxNumberOfMessages":0}`, "InvalidParameterValue;Sender"},
		{"AmazonSQS.ReceiveMessage", `{` + url + `,"ReceiveRequestAttemptId":"a b"}`, "InvalidParameterValue;Sender"},
		{"AmazonSQS.ReceiveMessage", `{` + url + `,"WaitTimeSeconds":-9223372036854775808}`, "InvalidParameterValue;Sender"},
		{"AmazonSQS.ChangeMessageVisibility", `{` + url + `,"ReceiptHandle":"x"}`, "MissingParameter;Sender"},
		{"AmazonSQS.DeleteMessage", `{` + url + `}`, "MissingParameter;Sender"},
		{"AmazonSQS.SetQueueAttributes", `{` + url + `}`, "MissingParameter;Sender"},
		{"AmazonSQS.GetQueueUrl", `{}`, "MissingParameter;Sender"},
		{"AmazonSQS.GetQueueUrl", `{"QueueName":"orders","QueueOwnerAWSAccountId":"1"}`, "AWS.SimpleQueueService.NonExistentQueue;Sender"},
		{"AmazonSQS.GetQueueUrl", `{"QueueName":"arn:aws:sqs:us-east-1:000000000000:orders"}`, "AWS.SimpleQueueService.NonExistentQueue;Sender"},
		{"AmazonSQS.GetQueueAttributes", `{` + url + `,"AttributeNames":["FifoQueue"]}`, "InvalidAttributeName;Sender"},
		{"AmazonSQS.ListQueues", `{"MaxResults":0}`, "InvalidParameterValue;Sender"},
		{"AmazonSQS.ListQueues", `{"MaxResults":1001}`, "InvalidParameterValue;Sender"},
		{"AmazonSQS.StartMessageMoveTask", `{}`, "MissingParameter;Sender"},
	} {
		w := post(s, c.target, c.body)
		expect(t, c.target+" "+c.body, w.Header().Get("X-Amzn-Query-Error"), c.want)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("Action=ListQueues"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	expect(t, "the query protocol", w.Header().Get("X-Amzn-Query-Error"), "AWS.SimpleQueueService.UnsupportedOperation;Sender")
	r = httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	r.Header.Set("X-Amz-Target", "AmazonSQS.ListQueues")
	w = httptest.NewRecorder()
	s.ServeHTTP(w, r)
	expect(t, "GET", w.Code, http.StatusBadRequest)
	w = post(s, "AmazonSQS.SendMessage", `{`+url+`,"MessageBody":"`+strings.Repeat("x", 16<<20)+`"}`)
	expect(t, "more than any batch takes", w.Header().Get("X-Amzn-Query-Error"), "MalformedInput;Sender")
}

// The SDK for Go leaves a VisibilityTimeout of 0 out, other SDKs send it.
func TestHTTP_ZeroIsNotAbsent(t *testing.T) {
	s := queue.New(queue.Options{})
	q := create(t, s, "orders", map[string]string{"ReceiveMessageWaitTimeSeconds": "20", "DelaySeconds": "900"})
	url := `"QueueUrl":"` + q.URL() + `"`
	w := post(s, "AmazonSQS.SendMessage", `{`+url+`,"MessageBody":"x","DelaySeconds":0}`)
	expect(t, "send", w.Code, http.StatusOK)
	for range 2 {
		w = post(s, "AmazonSQS.ReceiveMessage", `{`+url+`,"VisibilityTimeout":0}`)
		expect(t, "received", strings.Contains(w.Body.String(), `"Body":"x"`), true)
	}
	w = post(s, "AmazonSQS.PurgeQueue", `{`+url+`}`)
	expect(t, "purge", w.Code, http.StatusOK)
	expect(t, "an action without a result", w.Body.Len(), 0)
	start := time.Now()
	w = post(s, "AmazonSQS.ReceiveMessage", `{`+url+`,"WaitTimeSeconds":0}`)
	expect(t, "nothing", strings.TrimSpace(w.Body.String()), `{}`)
	expect(t, "at once", time.Since(start) < 10*time.Second, true)
}

func TestHTTP_URLsFollowTheClientOrTheOption(t *testing.T) {
	for base, want := range map[string]string{
		"":                      "http://sqs.local:9324/000000000000/orders",
		"http://127.0.0.1:9324": "http://127.0.0.1:9324/000000000000/orders",
	} {
		s := queue.New(queue.Options{BaseURL: base})
		for _, target := range []string{"AmazonSQS.CreateQueue", "AmazonSQS.GetQueueUrl"} {
			var got struct {
				URL string `json:"QueueUrl"`
			}
			if err := json.Unmarshal(post(s, target, `{"QueueName":"orders"}`).Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			expect(t, target, got.URL, want)
		}
		expect(t, "found by any host", post(s, "AmazonSQS.PurgeQueue", `{"QueueUrl":"https://sqs.us-east-1.amazonaws.com/000000000000/orders"}`).Code, http.StatusOK)
	}
}

func TestHTTP_ClosedIsUnavailable(t *testing.T) {
	s := queue.New(queue.Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	w := post(s, "AmazonSQS.CreateQueue", `{"QueueName":"orders"}`)
	expect(t, "status", w.Code, http.StatusServiceUnavailable)
	expect(t, "query error", w.Header().Get("X-Amzn-Query-Error"), "ServiceUnavailable;Receiver")
}

// FuzzRequest: whatever a client sends gets an answer in JSON, and leaves the
// queue in working order.
func FuzzRequest(f *testing.F) {
	targets := []string{
		"CreateQueue", "GetQueueUrl", "ListQueues", "GetQueueAttributes", "SetQueueAttributes", "PurgeQueue",
		"SendMessage", "SendMessageBatch", "ReceiveMessage", "DeleteMessage", "DeleteMessageBatch",
		"ChangeMessageVisibility", "ChangeMessageVisibilityBatch", "StartMessageMoveTask", "ListMessageMoveTasks",
	}
	const url = `{"QueueUrl":"http://x/000000000000/orders.fifo",`
	for i, body := range []string{
		`{"QueueName":"a.fifo","Attributes":{"FifoQueue":"true"}}`, `{"QueueName":"orders.fifo"}`, `{"MaxResults":1,"NextToken":"a"}`,
		url + `"AttributeNames":["All"]}`, url + `"Attributes":{"RedrivePolicy":"{\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:000000000000:dead.fifo\",\"maxReceiveCount\":\"2\"}"}}`,
		url + `"x":null}`,
		url + `"MessageBody":"x","MessageGroupId":"a","MessageDeduplicationId":"1","MessageAttributes":{"a":{"DataType":"Binary","BinaryValue":"AP8="}}}`,
		url + `"Entries":[{"Id":"1","MessageBody":"x","MessageGroupId":"a"},{"Id":"2","MessageBody":"y","MessageGroupId":"a","DelaySeconds":1}]}`,
		url + `"WaitTimeSeconds":0,"VisibilityTimeout":0,"MaxNumberOfMessages":10,"MessageAttributeNames":["a.*"]}`,
		url + `"ReceiptHandle":"AQEBMDA"}`, url + `"Entries":[{"Id":"1","ReceiptHandle":"AQEB"}]}`,
		url + `"ReceiptHandle":"x","VisibilityTimeout":1e3}`, url + `"Entries":[{"Id":"1","ReceiptHandle":"x","VisibilityTimeout":-1}]}`,
		`{"SourceArn":"arn:aws:sqs:us-east-1:000000000000:dead.fifo"}`, `{"SourceArn":"x","MaxResults":11}`,
	} {
		f.Add(uint8(i), []byte(body))
	}
	f.Fuzz(func(t *testing.T, action uint8, body []byte) {
		s := queue.New(queue.Options{})
		fifo := map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"}
		dead := create(t, s, "dead.fifo", fifo)
		q := create(t, s, "orders.fifo", map[string]string{
			"FifoQueue": "true", "ContentBasedDeduplication": "true",
			"RedrivePolicy": `{"deadLetterTargetArn":"` + dead.ARN() + `"}`,
		})
		sendAll(t, q, "g", "first")
		target := targets[int(action)%len(targets)]
		if target == "ReceiveMessage" && bytes.Contains(body, []byte("WaitTimeSeconds")) && !bytes.Contains(body, []byte(`"WaitTimeSeconds":0`)) {
			return // waits, in real time
		}
		w := post(s, "AmazonSQS."+target, string(body))
		if w.Code != http.StatusOK && (w.Code < 400 || w.Code >= 500 || w.Header().Get("X-Amzn-Query-Error") == "") {
			t.Errorf("%s: status %d, %v", target, w.Code, w.Header())
		}
		if w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %q is no JSON", target, w.Body)
		}
		if _, err := q.Send(queue.Outgoing{Body: "last", GroupID: "last"}); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		if d := q.Depth(); d.Visible+d.InFlight+d.Delayed == 0 {
			t.Errorf("afterwards: %v", d)
		}
	})
}
