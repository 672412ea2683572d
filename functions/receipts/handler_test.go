package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/demo"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/functions/internal/notification"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// outgoing is a queue that stores the messages that are sent, or fails.
type outgoing struct {
	sent []*sqs.SendMessageInput
	err  error
}

func (o *outgoing) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	if o.err != nil {
		return nil, o.err
	}
	o.sent = append(o.sent, in)
	return &sqs.SendMessageOutput{}, nil
}

// setUp is the function with a queue and a store in memory. Enlisted writes are captured, not
// committed; TestG1 commits them.
type setUp struct {
	queue   *outgoing
	store   *idemtest.Store
	clock   *idemtest.Clock
	handler handler
	written []ledger.Receipt
}

func newSetUp() *setUp {
	s := &setUp{queue: &outgoing{}, store: idemtest.NewStore(nil), clock: idemtest.NewClock()}
	s.handler = handler{receipts: "receipts", queue: queue{s.queue, "https://queue.example.com"}, sent: demo.Nowhere}
	return s
}

func (s *setUp) guarded(store lambdaidem.Store) streamHandler {
	return guarded(lambdaidem.New(store, func(o *lambdaidem.Options) { o.Observer, o.Clock = lambdaidem.Discard, s.clock.Now }), s.handler)
}

// deliver lets the function handle stream records, and returns the sequence numbers of those that
// failed.
func (s *setUp) deliver(t *testing.T, records ...events.DynamoDBEventRecord) []string {
	t.Helper()
	ctx, captured := dynamostore.Capture(t.Context())
	answer, err := s.guarded(s.store)(ctx, events.DynamoDBTimeWindowEvent{DynamoDBEvent: events.DynamoDBEvent{Records: records}})
	if err != nil {
		t.Fatal(err)
	}
	// Each record of a batch has a transaction of its own, so their writes may have the
	// same name. Captured puts all writes into one transaction, where the second write
	// with a name is an error.
	writes, _ := captured.Writes()
	for _, w := range writes {
		var r ledger.Receipt
		if err := attributevalue.UnmarshalMap(w.Action.Put.Item, &r); err != nil || w.Table != "receipts" || w.Action.Put.ConditionExpression != nil {
			t.Fatalf("a write to %s: %+v, under the condition %q, %v", w.Table, r, aws.ToString(w.Action.Put.ConditionExpression), err)
		}
		s.written = append(s.written, r)
	}
	failed := []string{}
	for _, f := range answer.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	return failed
}

func (s *setUp) expect(t *testing.T, receipts, messages int) {
	t.Helper()
	if len(s.written) != receipts || len(s.queue.sent) != messages {
		t.Errorf("%d receipts and %d messages; want %d and %d", len(s.written), len(s.queue.sent), receipts, messages)
	}
}

func payment() ledger.Payment {
	return ledger.Payment{ID: ledger.NewPaymentID(), Owner: "https://issuer.example.com alice", Amount: 1250, Currency: "EUR",
		Reference: "order 7", CreatedAt: "2026-01-02T03:04:05.678Z", Refundable: 1250}
}

var sequence = 100

// record returns a stream record of the table of payments, as Lambda delivers it.
func record(t *testing.T, what events.DynamoDBOperationType, item any) events.DynamoDBEventRecord {
	t.Helper()
	fields, err := attributevalue.MarshalMap(item)
	if err != nil {
		t.Fatal(err)
	}
	text, err := attributevalue.MarshalMapJSON(fields)
	if err != nil {
		t.Fatal(err)
	}
	var image map[string]events.DynamoDBAttributeValue
	if err := json.Unmarshal(text, &image); err != nil {
		t.Fatal(err)
	}
	sequence++
	r := events.DynamoDBEventRecord{EventID: strconv.Itoa(sequence), EventName: string(what), EventSource: "aws:dynamodb",
		EventSourceArn: "arn:aws:dynamodb:us-east-1:111122223333:table/payments/stream/2026-01-01T00:00:00.000",
		Change: events.DynamoDBStreamRecord{SequenceNumber: strconv.Itoa(sequence), StreamViewType: "NEW_IMAGE",
			Keys: map[string]events.DynamoDBAttributeValue{"id": image["id"]}}}
	if what != events.DynamoDBOperationTypeRemove {
		r.Change.NewImage = image
	}
	return r
}

func insert(t *testing.T, p ledger.Payment) events.DynamoDBEventRecord {
	t.Helper()
	return record(t, events.DynamoDBOperationTypeInsert, p)
}

func TestV4_NewPaymentHasAReceiptAndAMessageWithAKey(t *testing.T) {
	s, p := newSetUp(), payment()
	if failed := s.deliver(t, insert(t, p)); len(failed) != 0 {
		t.Fatalf("%v failed", failed)
	}
	s.expect(t, 1, 1)
	got := s.written[0]
	want := ledger.Receipt{ID: "rec_" + strings.TrimPrefix(p.ID, "pay_"), PaymentID: p.ID, Owner: p.Owner, Amount: p.Amount, Currency: p.Currency, PaidAt: p.CreatedAt, WrittenAt: got.WrittenAt}
	if got != want {
		t.Errorf("the receipt is %+v; want %+v", got, want)
	}
	if _, err := time.Parse(time.RFC3339Nano, got.WrittenAt); err != nil {
		t.Error(err)
	}
	m := s.queue.sent[0]
	key := m.MessageAttributes[lambdaidem.MessageKey].StringValue
	if aws.ToString(key) != p.ID || aws.ToString(m.MessageDeduplicationId) != p.ID || aws.ToString(m.MessageGroupId) != p.ID || *m.QueueUrl != "https://queue.example.com" {
		t.Errorf("the message is %+v; want the payment's ID as key, deduplication id and group", m)
	}
	if n, err := notification.Parse(*m.MessageBody); err != nil || n != notification.Of(p) {
		t.Errorf("the message says %+v, %v; want %+v", n, err, notification.Of(p))
	}
}

func TestV2_RecordThatComesAgainHasOneReceipt(t *testing.T) {
	s, r := newSetUp(), insert(t, payment())
	for range 3 {
		if failed := s.deliver(t, r); len(failed) != 0 {
			t.Errorf("%v failed", failed)
		}
	}
	s.expect(t, 1, 1)
}

// Stream records of refunds, updates and removals are not new payments. The function ignores them
// and writes no idempotency record.
func TestOnlyNewPaymentsHaveReceipts(t *testing.T) {
	s, p := newSetUp(), payment()
	failed := s.deliver(t,
		record(t, events.DynamoDBOperationTypeInsert, ledger.Refund{ID: ledger.NewRefundID(), PaymentID: p.ID, Amount: 5, Currency: "EUR"}),
		record(t, events.DynamoDBOperationTypeModify, p),
		record(t, events.DynamoDBOperationTypeRemove, p),
		record(t, events.DynamoDBOperationTypeInsert, map[string]int{"id": 7}),
	)
	if s.expect(t, 0, 0); len(failed) != 0 || len(s.store.Calls()) != 0 {
		t.Errorf("%v failed, and the store was asked for %v", failed, s.store.Calls())
	}
}

// The stream does not keep the records of a transaction together.
func TestV2_RecordsMayComeInAnyOrderAndCompany(t *testing.T) {
	s, a, b := newSetUp(), payment(), payment()
	records := []events.DynamoDBEventRecord{
		record(t, events.DynamoDBOperationTypeInsert, ledger.Refund{ID: ledger.NewRefundID(), PaymentID: a.ID}),
		insert(t, a), record(t, events.DynamoDBOperationTypeModify, b), insert(t, b), record(t, events.DynamoDBOperationTypeModify, a),
	}
	given := slices.Clone(records)
	if failed := s.deliver(t, records...); len(failed) != 0 {
		t.Errorf("%v failed", failed)
	}
	s.expect(t, 2, 2)
	for i := range given {
		if records[i].EventID != given[i].EventID {
			t.Error("the event was changed, which its caller still has")
		}
	}
}

func TestV2_FailureIsReportedAndComesAgain(t *testing.T) {
	s, r := newSetUp(), insert(t, payment())
	s.queue.err = errors.New("no reply")
	if failed := s.deliver(t, r); !slices.Equal(failed, []string{r.Change.SequenceNumber}) {
		t.Errorf("%v failed; want %s, which was not sent", failed, r.Change.SequenceNumber)
	}
	s.expect(t, 0, 0)
	s.queue.err = nil
	s.deliver(t, r)
	s.expect(t, 1, 1)
}

func TestWhatIsNoPaymentIsReported(t *testing.T) {
	for name, change := range map[string]func(image map[string]events.DynamoDBAttributeValue){
		"no image":         func(image map[string]events.DynamoDBAttributeValue) { clear(image) },
		"another's":        func(image map[string]events.DynamoDBAttributeValue) { image["id"] = events.NewStringAttribute("pay_1") },
		"no amount":        func(image map[string]events.DynamoDBAttributeValue) { delete(image, "amount") },
		"an amount of 0":   func(image map[string]events.DynamoDBAttributeValue) { image["amount"] = events.NewNumberAttribute("0") },
		"no owner":         func(image map[string]events.DynamoDBAttributeValue) { delete(image, "owner") },
		"an owner of none": func(image map[string]events.DynamoDBAttributeValue) { image["owner"] = events.NewStringAttribute("") },
		"no currency":      func(image map[string]events.DynamoDBAttributeValue) { delete(image, "currency") },
		"a text as amount": func(image map[string]events.DynamoDBAttributeValue) { image["amount"] = events.NewStringAttribute("5") },
	} {
		s, r := newSetUp(), insert(t, payment())
		change(r.Change.NewImage)
		if failed := s.deliver(t, r); len(failed) != 1 {
			t.Errorf("%s: it did not fail", name)
		}
		s.expect(t, 0, 0)
	}
}

// A stream that was turned off and on has another ARN, and its records have other ids. The
// dead-letter queue names a record for two weeks.
func TestK5_PaymentHasOneReceiptWhicheverWayItComes(t *testing.T) {
	s, r := newSetUp(), insert(t, payment())
	s.deliver(t, r)
	s.clock.Advance(29 * 24 * time.Hour)
	r.EventID, r.Change.SequenceNumber = "another", "7"
	r.EventSourceArn = "arn:aws:dynamodb:us-east-1:111122223333:table/payments/stream/2026-01-02T00:00:00.000"
	if failed := s.deliver(t, r); len(failed) != 0 {
		t.Errorf("%v failed", failed)
	}
	s.expect(t, 1, 1)
}

// keys returns the different keys of the sent messages.
func (s *setUp) keys() []string {
	all := map[string]bool{}
	for _, m := range s.queue.sent {
		all[*m.MessageAttributes[lambdaidem.MessageKey].StringValue+" "+*m.MessageDeduplicationId] = true
	}
	return slices.Collect(maps.Keys(all))
}

// An operator builds a record that the stream gave up from the payment's current item.
func TestF5_RecordMadeOfTheItemOfTodayIsTheSame(t *testing.T) {
	refused := errors.New("the table of receipts is out of reach")
	for name, first := range map[string]func(*testing.T, *setUp, events.DynamoDBEventRecord){
		"after a success": func(t *testing.T, s *setUp, r events.DynamoDBEventRecord) { s.deliver(t, r) },
		"after a failure": func(t *testing.T, s *setUp, r events.DynamoDBEventRecord) {
			s.handler.sent = func(context.Context, string) error { return refused }
			s.deliver(t, r)
		},
		"after a crash": func(t *testing.T, s *setUp, r events.DynamoDBEventRecord) {
			s.handler.sent = func(ctx context.Context, _ string) error { s.store.Kill(ctx); return refused }
			idemtest.Crash(t, 30*time.Second, func(ctx context.Context) {
				_, _ = s.guarded(s.store)(ctx, events.DynamoDBTimeWindowEvent{DynamoDBEvent: events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{r}}})
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := newSetUp(), payment()
			first(t, s, insert(t, p))
			s.handler.sent = demo.Nowhere
			s.clock.Advance(time.Hour) // the lease ends
			p.Refundable = 0
			today := insert(t, p)
			today.Change.NewImage["refunded_at"] = events.NewStringAttribute("2026-01-03")
			today.Change.OldImage = today.Change.NewImage
			for range 2 {
				if failed := s.deliver(t, today); len(failed) != 0 {
					t.Errorf("%v failed", failed)
				}
			}
			if keys := s.keys(); len(keys) != 1 || len(s.written) != 1 {
				t.Errorf("%d receipts, and messages under %v; want one receipt and one key", len(s.written), keys)
			}
		})
	}
}

// The fingerprint covers the attributes of a payment that never change.
func TestF5_AnotherPaymentUnderTheSameIDIsRefused(t *testing.T) {
	for name, change := range map[string]func(p *ledger.Payment){
		"owner":     func(p *ledger.Payment) { p.Owner = "bob" },
		"amount":    func(p *ledger.Payment) { p.Amount++ },
		"currency":  func(p *ledger.Payment) { p.Currency = "USD" },
		"reference": func(p *ledger.Payment) { p.Reference = "order 8" },
		"time":      func(p *ledger.Payment) { p.CreatedAt = "2026-01-02T03:04:05.679Z" },
	} {
		s, p := newSetUp(), payment()
		s.deliver(t, insert(t, p))
		change(&p)
		if failed := s.deliver(t, insert(t, p)); len(failed) != 1 {
			t.Errorf("%s: it was taken for the same", name)
		}
		s.expect(t, 1, 1)
	}
}

// If the idempotency record has expired or is lost, the handler runs again and writes the same
// receipt with the same id.
func TestReceiptWithoutItsRecordIsWrittenOverByItself(t *testing.T) {
	s, p := newSetUp(), payment()
	for range 2 {
		if failed := s.deliver(t, insert(t, p)); len(failed) != 0 {
			t.Errorf("%v failed", failed)
		}
		s.store = idemtest.NewStore(nil)
	}
	s.expect(t, 2, 2)
	s.written[1].WrittenAt = s.written[0].WrittenAt
	if s.written[0] != s.written[1] || len(s.keys()) != 1 {
		t.Errorf("the receipts are %+v, the keys %v; want one of each", s.written, s.keys())
	}
}

// A function with another name, which begins with the last 24 hours of the stream, finds the
// same records.
func TestF1_RenamedFunctionDoesNothingAgain(t *testing.T) {
	s, r := newSetUp(), insert(t, payment())
	before := lambdacontext.FunctionName
	t.Cleanup(func() { lambdacontext.FunctionName = before })
	for _, name := range []string{"stack-ReceiptsFunction-1", "stack-OutboxFunction-2"} {
		lambdacontext.FunctionName = name
		if failed := s.deliver(t, r); len(failed) != 0 {
			t.Errorf("%s: %v failed", name, failed)
		}
	}
	s.expect(t, 1, 1)
}

func TestDemoFailsAfterTheMessageWasSent(t *testing.T) {
	s, p := newSetUp(), payment()
	s.handler.sent, p.Reference = demo.At("receipt"), "order 7 receipt-fails=2"
	r := insert(t, p)
	for attempt, want := range []int{1, 1, 0} {
		if failed := s.deliver(t, r); len(failed) != want {
			t.Errorf("attempt %d: %v failed; want %d", attempt+1, failed, want)
		}
	}
	s.expect(t, 1, 3)
}

// An attempt dies after it has sent its message. The next attempt sends the same message
// again. The receipt is written once, in the transaction that completes the record.
func TestG1_ReceiptIsWrittenOnceAlthoughAnAttemptDied(t *testing.T) {
	client := ddblocal.ForTest(t).Client()
	names := template.TablesForTest(t, client, "../../template.yaml")
	s, p := newSetUp(), payment()
	store := idemtest.NewStore(dynamostore.New(client, names["IdempotencyTable"]))
	s.handler.receipts = ledger.Receipts(names["ReceiptsTable"])
	receipts := func() []map[string]any {
		t.Helper()
		out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(names["ReceiptsTable"]), ConsistentRead: aws.Bool(true)})
		if err != nil {
			t.Fatal(err)
		}
		var all []map[string]any
		if err := attributevalue.UnmarshalListOfMaps(out.Items, &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	event := events.DynamoDBTimeWindowEvent{DynamoDBEvent: events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{insert(t, p), insert(t, payment())}}}

	s.handler.sent = func(ctx context.Context, _ string) error { store.Kill(ctx); return nil }
	idemtest.Crash(t, 30*time.Second, func(ctx context.Context) {
		_, _ = s.guarded(store)(ctx, events.DynamoDBTimeWindowEvent{DynamoDBEvent: events.DynamoDBEvent{Records: event.Records[:1]}})
	})
	if all := receipts(); len(all) != 0 || len(s.queue.sent) != 1 {
		t.Fatalf("after the crash there are the receipts %v and %d messages; want none, and one", all, len(s.queue.sent))
	}
	s.clock.Advance(time.Hour) // the lease ends
	s.handler.sent = demo.Nowhere
	for range 2 {
		if answer, err := s.guarded(store)(t.Context(), event); err != nil || len(answer.BatchItemFailures) != 0 {
			t.Fatalf("%+v, %v", answer, err)
		}
	}
	if all := receipts(); len(all) != 2 || all[0]["payment_id"] == all[1]["payment_id"] {
		t.Errorf("the receipts are %v; want one of each payment", all)
	}
	if sent := s.queue.sent; len(sent) != 3 || *sent[0].MessageBody != *sent[1].MessageBody || *sent[0].MessageDeduplicationId != *sent[1].MessageDeduplicationId ||
		*sent[1].MessageDeduplicationId == *sent[2].MessageDeduplicationId {
		t.Errorf("%d messages; want the first twice, the same, and the second", len(sent))
	}
}

// The TTL covers the day in which the stream can deliver a record, and the time in which the
// dead-letter queue names it and an operator may send it by hand.
func TestL7_RecordsOutliveThePaymentsWayBack(t *testing.T) {
	deployed, err := template.Read("../../template.yaml", template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	queues := map[string]template.Queue{}
	for _, q := range deployed.Queues {
		queues[q.LogicalID] = q
	}
	const stream = 24 * time.Hour // DynamoDB, "Change data capture for DynamoDB Streams"
	dead, ok := queues["ReceiptsDeadQueue"]
	if back := stream + dead.Retention; !ok || ttl <= back {
		t.Errorf("the ttl is %v, and a payment can come back for %v: %v", ttl, back, slices.Collect(maps.Keys(queues)))
	}
}
