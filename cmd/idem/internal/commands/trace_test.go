package commands

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// invoked returns a context like that of an invocation with the request id.
func invoked(ctx context.Context, id string) context.Context {
	return lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: id})
}

// Show prints the request id of the invocation that last acquired the record, and the last
// failure. It does not claim that a released record means that nothing happened.
func TestL9_ShowNamesTheInvocationAndTheLastFailure(t *testing.T) {
	d := openDesk(t)
	event := events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m-1", EventSourceARN: "arn:q", Body: "{}"}}}
	fails := d.guard.SQS(func(context.Context, events.SQSMessage) error {
		return lambdaidem.Reject(503, "bank_closed", "4111 1111")
	})
	if _, err := fails(invoked(t.Context(), "invocation-1"), event); err != nil {
		t.Fatal(err)
	}
	asked := []string{"show", "--namespace", "shop", "--operation", "arn:q", "--message", "--own-id", "--key", "m-1"}
	d.idem(asked...).want(t, exitDone, "invocation    invocation-1", "last failure  bank_closed", "released: its last attempt failed")
	held := d.held()
	d.pay(held, "k", died)
	d.idem(append([]string{"release", "--token", d.view("k").Token, "--reason", "none", "--by", "bob", "--yes"}, byKey("k")...)...).want(t, exitDone, "released: an operator decided")
	d.pay(held, "k", func(context.Context) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{}, lambdaidem.Retryable(errLater)
	})
	d.idem(append([]string{"show"}, byKey("k")...)...).want(t, exitDone, "released: its last attempt failed", "operator")
	var v recordView
	got := d.idem(append(asked, "-o", "json")...).want(t, exitDone)
	if got.into(t, &v); v.Invocation != "invocation-1" || v.LastFailure != "bank_closed" || strings.Contains(got.out, "4111") {
		t.Errorf("it is shown as %s", got.out)
	}
}

// Leases prints the request ids of the invocations that died.
func TestL9_LeasesNameTheInvocations(t *testing.T) {
	d := openDesk(t)
	d.pay(d.held(), "k", died)
	d.idem("leases", "--scan").want(t, exitDone, "RECORD\n")
	hold := d.held().SQS(func(context.Context, events.SQSMessage) error { return lambdaidem.Uncertain(errLater) })
	if _, err := hold(invoked(t.Context(), "invocation-2"), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m-2", EventSourceARN: "arn:q", Body: "{}"}}}); err != nil {
		t.Fatal(err)
	}
	d.idem("leases", "--scan").want(t, exitDone, "INVOCATION\n", "invocation-2\n")
	var v leasesView
	d.idem("leases", "--scan", "-o", "json").want(t, exitDone).into(t, &v)
	named := 0
	for _, l := range v.Leases {
		if l.Invocation == "invocation-2" {
			named++
		}
	}
	if named != 1 {
		t.Errorf("it lists %+v", v.Leases)
	}
}

// Trace follows a payment to the record of its stream, to that of its message, and to that of
// the call to which the message's handler passed a downstream key.
func TestO2_TraceFollowsAChain(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, `"k"`, func(context.Context) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: `{"id":"pay_1","of":[{"n":7}]}`}, nil
	})
	guards := func(namespace string) *lambdaidem.Guard {
		return d.guard.With(func(o *lambdaidem.Options) { o.Namespace = namespace })
	}
	stream := guards("receipts").DynamoDBStream(func(context.Context, events.DynamoDBEventRecord) error { return nil },
		func(o *lambdaidem.BatchOptions[events.DynamoDBEventRecord]) {
			o.Operation = "receipt"
			o.Key = func(context.Context, events.DynamoDBEventRecord) (string, error) { return "pay_1", nil }
		})
	if _, err := stream(invoked(t.Context(), "of-the-stream"), events.DynamoDBTimeWindowEvent{DynamoDBEvent: events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{{EventID: "1", Change: events.DynamoDBStreamRecord{SequenceNumber: "1"}}}}}); err != nil {
		t.Fatal(err)
	}
	mail, charged := "", ""
	queue := guards("notifications").SQS(func(ctx context.Context, _ events.SQSMessage) error {
		mail = lambdaidem.DownstreamKey(ctx, "mail")
		_, err := lambdaidem.Step(ctx, "charge", func(ctx context.Context) (map[string]string, error) {
			charged = lambdaidem.DownstreamKey(ctx, "charge")
			return map[string]string{"ref/1": "ch_1"}, nil
		})
		return errors.Join(lambdaidem.Uncertain(errLater), err)
	}, func(o *lambdaidem.BatchOptions[events.SQSMessage]) { o.Operation = "notification" })
	one := "pay_1"
	message := events.SQSMessage{MessageId: "m", EventSourceARN: "arn:q", Body: "{}",
		MessageAttributes: map[string]events.SQSMessageAttribute{lambdaidem.MessageKey: {DataType: "String", StringValue: &one}}}
	if _, err := queue(invoked(t.Context(), "of-the-queue"), events.SQSEvent{Records: []events.SQSMessage{message}}); err != nil {
		t.Fatal(err)
	}
	if _, err := lambdaidem.Do(t.Context(), guards("mails"), lambdaidem.Call{Operation: "send it", Key: mail, Principal: "100 % me"}, func(context.Context) (int, error) { return 1, nil }); err != nil {
		t.Fatal(err)
	}
	chain := []string{
		"--then", "answer:/id => receipts message receipt",
		"--then", "key => notifications message notification",
		"--then", "downstream:mail => mails  send%20it 100%20%25%20me",
	}
	var hops []hop
	d.idem(append(append([]string{"trace", "-o", "json", "--downstream", "mail"}, byKey(`"k"`)...), chain...)...).want(t, exitDone).into(t, &hops)
	if len(hops) != 4 {
		t.Fatalf("the chain has %d records", len(hops))
	}
	for i, want := range []struct{ from, key, state, invocation string }{
		{"", "k", "completed", ""}, {"answer:/id", "pay_1", "completed", "of-the-stream"},
		{"key", "pay_1", "dead", "of-the-queue"}, {"downstream:mail", mail, "completed", ""},
	} {
		h := hops[i]
		if h.Record == nil || h.From != want.from || h.Key != want.key || h.Record.State != want.state || h.Record.Invocation != want.invocation || h.ID != h.Record.ID || h.Unread != "" {
			t.Errorf("record %d is %+v; want %+v", i, h, want)
		}
	}
	if hops[2].Record == nil || len(hops[2].Record.Downstream) != 2 || hops[2].Record.Downstream[0] != (downstreamView{"charge", charged}) || hops[2].Record.Downstream[1] != (downstreamView{"mail", mail}) {
		t.Errorf("the message's handler passed on %+v", hops[2].Record)
	}
	d.idem(append([]string{"trace", hops[0].ID}, chain...)...).want(t, exitDone, "POST /payments/{id}", "message receipt", "of-the-queue", "dead", hops[0].Record.StartedAt.Format(time.RFC3339), "downstream charge: "+charged+", of "+hops[2].ID)

	// Follow the result of a step.
	hops = nil
	d.idem("trace", "-o", "json", "--namespace", "notifications", "--operation", "notification", "--message", "--key", "pay_1",
		"--then", "step:charge/ref~11 => bank message charges").want(t, exitDone).into(t, &hops)
	if len(hops) != 2 || hops[1].Key != "ch_1" || hops[1].Record != nil || hops[1].ID == "" || hops[1].Unread != "" {
		t.Errorf("by a step it is %+v", hops)
	}
	// The records of a chain have the same Options.IDPrefix. If the first record is given by its
	// id, that id has the prefix. Otherwise an operator would not find the mail, and send it again.
	acme := d.guard.With(func(o *lambdaidem.Options) { o.IDPrefix = "acme" })
	for _, operation := range []string{"order", "mail"} {
		if _, err := lambdaidem.Do(t.Context(), acme, lambdaidem.Call{Operation: operation, Key: "k"}, func(context.Context) (map[string]string, error) {
			return map[string]string{"mail": "k"}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, first := range [][]string{
		{"--id-prefix", "acme", "--namespace", "shop", "--operation", "order", "--key", "k"},
		{acme.RecordID(lambdaidem.Identity{Operation: "order", Key: "k"})},
	} {
		hops = nil
		d.idem(append(append([]string{"trace", "-o", "json"}, first...), "--then", "answer:/mail => shop  mail")...).want(t, exitDone).into(t, &hops)
		if want := acme.RecordID(lambdaidem.Identity{Operation: "mail", Key: "k"}); len(hops) != 2 || hops[1].ID != want || hops[1].Record == nil {
			t.Errorf("%q leads to %+v; want the record %s", first, hops, want)
		}
	}

	id := d.view("k").ID
	for then, says := range map[string]string{
		"key => receipts message receipt":            "unknown: the key of the record before is not known",
		"answer:/no => receipts message receipt":     "unknown: it has no text and no number at /no",
		"answer:/of/1 => receipts message receipt":   "unknown: it has no /of/1",
		"answer:/of => receipts message receipt":     "unknown: it has no text",
		"step:x/y => receipts message receipt":       `unknown: the record before has no step "x"`,
		"answer:/of/0/n => receipts message receipt": "7",
		"answer:/id => shop message nobody":          "none without an ID prefix: not begun, expired, or run unguarded",
	} {
		d.idem("trace", id, "--then", then).want(t, exitDone, says)
	}
	d.idem("trace", id, "--then", "answer:/id => shop message nobody", "--then", "downstream:x => shop message y").want(t, exitDone, "unknown: the record before is not there")
	for _, then := range []string{"", "key", "=> shop message receipt", "downstream: => shop message x", "answer:id => shop message x", "keys => shop message x",
		"key => shop", "key => shop POST receipts", "key =>  message x", "key => shop message " + strings.Repeat("x", 300), "key => a b c d e f"} {
		d.idem("trace", id, "--then", then).want(t, exitUsage, "--then")
	}
	d.idem("trace", "lambdaidem#none").want(t, exitNone)
}

// A key is the exact string or number in the JSON, without any conversion.
func TestO2_TraceReadsMembersExactly(t *testing.T) {
	for _, c := range []struct{ text, pointer, want string }{
		{`{"id":"a"}`, "/id", "a"}, {`{"id":12345678901234567890}`, "/id", "12345678901234567890"}, {`"k"`, "", "k"}, {`[1,"b"]`, "/1", "b"},
		{`{"a/b":{"m~n":"x"}}`, "/a~1b/m~0n", "x"}, {`{"id":""}`, "/id", ""}, {`{"id":true}`, "/id", ""}, {`{"id":null}`, "/id", ""}, {`[1]`, "/-1", ""}, {`[1]`, "/x", ""}, {`no`, "/id", ""}, {`"s"`, "/id", ""},
	} {
		if got, err := member(json.RawMessage(c.text), c.pointer, c.pointer); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s of %s is %q, %v; want %q", c.pointer, c.text, got, err, c.want)
		}
	}
}

// The base64 of a binary body can happen to be valid JSON. trace must not take a key from it,
// because the handler returned no such JSON.
func TestO2_TraceFindsNoKeyInABinaryAnswer(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, "k", func(context.Context) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "1234", IsBase64Encoded: true}, nil
	})
	d.idem("trace", d.view("k").ID, "--then", "answer: => receipts message receipt").want(t, exitDone, "no answer that can be read")
}

// The guards of an API have an ID prefix for each tenant, and the consumer of the queue behind it
// serves all tenants and has none. Trace finds its record. If it said that the mail has not begun,
// an operator would send the mail again.
func TestO2_TraceFindsTheRecordOfASharedConsumer(t *testing.T) {
	d := openDesk(t)
	acme := d.guard.With(func(o *lambdaidem.Options) { o.IDPrefix = "acme" })
	mail := ""
	if _, err := lambdaidem.Do(t.Context(), acme, lambdaidem.Call{Operation: "order", Key: "k"}, func(ctx context.Context) (string, error) {
		mail = lambdaidem.DownstreamKey(ctx, "mail")
		return "x", nil
	}); err != nil {
		t.Fatal(err)
	}
	consume := d.guard.SQS(func(context.Context, events.SQSMessage) error { return nil }, func(o *lambdaidem.BatchOptions[events.SQSMessage]) { o.Operation = "mail" })
	send := func(key string) {
		t.Helper()
		if out, err := consume(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m-" + key, EventSourceARN: "arn:q", Body: "{}",
			MessageAttributes: map[string]events.SQSMessageAttribute{lambdaidem.MessageKey: {DataType: "String", StringValue: &key}}}}}); err != nil || len(out.BatchItemFailures) > 0 {
			t.Fatal(out, err)
		}
	}
	order := []string{"trace", "--namespace", "shop", "--id-prefix", "acme", "--operation", "order", "--key", "k"}
	follow := func(then string) got {
		t.Helper()
		return d.idem(append(slices.Clone(order), "--then", then)...)
	}
	follow("downstream:mail => shop message mail").want(t, exitDone, "none with the ID prefix acme or without one: not begun, expired, or run unguarded")
	send(mail)
	sharedID := func(key string) string {
		return d.guard.RecordID(lambdaidem.Identity{Operation: "mail", Message: true, Key: key})
	}
	if got := follow("downstream:mail => shop message mail").want(t, exitDone, sharedID(mail)); strings.Contains(got.out, "none") || strings.Contains(got.out, "another tenant") {
		t.Errorf("the mail was sent, and trace prints\n%s", got.out)
	}
	send("k")
	follow("key => shop message mail").want(t, exitDone, sharedID("k"), "has no ID prefix: a call of another tenant with this key has the same record")

	// A record with the prefix of the chain comes before one without it.
	if _, err := lambdaidem.Do(t.Context(), acme, lambdaidem.Call{Operation: "bill", Key: "k"}, func(context.Context) (int, error) { return 1, nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := lambdaidem.Do(t.Context(), d.guard, lambdaidem.Call{Operation: "bill", Key: "k"}, func(context.Context) (int, error) { return 2, nil }); err != nil {
		t.Fatal(err)
	}
	if got := follow("key => shop  bill").want(t, exitDone, acme.RecordID(lambdaidem.Identity{Operation: "bill", Key: "k"})); strings.Contains(got.out, "another tenant") {
		t.Errorf("trace prints\n%s", got.out)
	}
}

// An expired record does not hide a later one under another identity that the scope may mean.
func TestO2_TraceLooksPastAnExpiredRecord(t *testing.T) {
	d := openDesk(t)
	acme := d.guard.With(func(o *lambdaidem.Options) { o.IDPrefix, o.TTL = "acme", lambdaidem.MinTTL })
	now := d.clock
	d.clock = time.Now().Add(-time.Hour)
	do := func(g *lambdaidem.Guard, operation string) {
		t.Helper()
		if _, err := lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: operation, Key: "k"}, func(context.Context) (int, error) { return 1, nil }); err != nil {
			t.Fatal(err)
		}
	}
	do(acme, "mail")
	d.clock = now
	do(acme.With(func(o *lambdaidem.Options) { o.TTL = 24 * time.Hour }), "order")
	order := []string{"trace", "--namespace", "shop", "--id-prefix", "acme", "--operation", "order", "--key", "k", "--then", "key => shop  mail"}
	d.idem(order...).want(t, exitDone, "none with the ID prefix acme or without one")
	do(d.guard, "mail")
	d.idem(order...).want(t, exitDone, d.guard.RecordID(lambdaidem.Identity{Operation: "mail", Key: "k"}))
	d.idem("trace", "--namespace", "shop", "--id-prefix", "acme", "--operation", "mail", "--key", "k").want(t, exitDone, " expired ")
}
