package template_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// These tests check settings of template.yaml that depend on each other. If one of these
// relations is wrong, a message can be lost, or delivered while the lease of its own dead attempt
// still runs. The functions' own tests check that records live long enough.

// streamRetention is how long DynamoDB Streams keeps a record (Amazon DynamoDB, "Change data
// capture for DynamoDB Streams").
const streamRetention = 24 * time.Hour

const mailerURL = "https://mailer.example.com"

// outbox has the functions and event sources that process the payments after they are stored.
type outbox struct {
	all                     *template.Template
	receipts, notifications *template.Function
	stream, queue           template.Source
	skew                    time.Duration
}

func deployedOutbox(t *testing.T) outbox {
	t.Helper()
	all, err := template.Read(filepath.Join("..", "..", "template.yaml"), template.Options{Parameters: map[string]string{"MailerUrl": mailerURL}})
	if err != nil {
		t.Fatal(err)
	}
	o := outbox{all: all, receipts: all.Function("ReceiptsFunction"), notifications: all.Function("NotificationsFunction")}
	if o.receipts == nil || o.notifications == nil || len(o.receipts.Sources) != 1 || len(o.notifications.Sources) != 1 {
		t.Fatal("the template has no ReceiptsFunction or NotificationsFunction with one source each")
	}
	o.stream, o.queue = o.receipts.Sources[0], o.notifications.Sources[0]
	// An option function receives the defaults. The functions don't change MaxSkew.
	lambdaidem.New(memstore.New(), func(options *lambdaidem.Options) { o.skew = options.MaxSkew })
	return o
}

// leaseOf returns how long the lease of an attempt lasts after its start: until MaxSkew after the
// deadline of the invocation.
func (o outbox) leaseOf(f *template.Function) time.Duration { return f.Timeout + o.skew }

// named returns the queue with this logical ID.
func (o outbox) named(t *testing.T, logicalID string) template.Queue {
	t.Helper()
	for _, q := range o.all.Queues {
		if q.LogicalID == logicalID {
			return q
		}
	}
	t.Fatalf("the template has no queue %s", logicalID)
	return template.Queue{}
}

// arn returns the ARN of a queue.
func arn(q template.Queue) string { return "arn:aws:sqs:us-east-1:000000000000:" + q.Name }

func TestV2_FailuresAreReportedRecordByRecord(t *testing.T) {
	o := deployedOutbox(t)
	if !o.stream.ReportsFailures || !o.queue.ReportsFailures {
		t.Errorf("ReportBatchItemFailures: stream %v, queue %v; without it Lambda takes a list of failures for a success", o.stream.ReportsFailures, o.queue.ReportsFailures)
	}
}

func TestOutbox_ReceiptsHearOfEveryPayment(t *testing.T) {
	o := deployedOutbox(t)
	if o.stream.Table != "PaymentsTable" || !o.stream.FromStart {
		t.Errorf("the source is %+v; want the stream of PaymentsTable from its start", o.stream)
	}
	for _, table := range o.all.Tables {
		// The receipts function reads a payment from its new image. An old image would only add
		// cost.
		if want := map[string]string{"PaymentsTable": "NEW_IMAGE"}[table.LogicalID]; table.Stream != want {
			t.Errorf("the stream of %s is %q, want %q", table.LogicalID, table.Stream, want)
		}
	}
}

// A wrong table or queue in a function's environment would raise no error: receipts would be
// written to the table of payments, or messages to a queue that nobody reads.
func TestOutbox_FunctionsKnowTheirTablesAndQueues(t *testing.T) {
	o := deployedOutbox(t)
	want := map[string]string{"NOTIFICATIONS_QUEUE_URL": o.named(t, "NotificationsQueue").URL}
	for variable, logicalID := range map[string]string{"IDEMPOTENCY_TABLE": "IdempotencyTable", "RECEIPTS_TABLE": "ReceiptsTable"} {
		for _, table := range o.all.Tables {
			if table.LogicalID == logicalID {
				want[variable] = table.Name
			}
		}
	}
	if len(want) != 3 {
		t.Fatalf("the template has not all of them: %v", want)
	}
	for variable, value := range want {
		if got := o.receipts.Environment[variable]; got != value {
			t.Errorf("%s is %q, want %q", variable, got, value)
		}
	}
	if got := o.notifications.Environment["IDEMPOTENCY_TABLE"]; got != want["IDEMPOTENCY_TABLE"] {
		t.Errorf("the IDEMPOTENCY_TABLE of the notifications is %q", got)
	}
}

func TestOutbox_MailerIsTheOneOfTheDeployment(t *testing.T) {
	if got := deployedOutbox(t).notifications.Environment["MAILER_URL"]; got != mailerURL {
		t.Errorf("MAILER_URL is %q, want the parameter MailerUrl", got)
	}
}

func TestOutbox_WhatAStreamGivesUpIsKept(t *testing.T) {
	o := deployedOutbox(t)
	dead := o.named(t, "ReceiptsDeadQueue")
	if o.stream.OnFailure != arn(dead) || dead.FIFO || dead.DeadLetter != "" {
		t.Errorf("what is given up goes to %q; want the standard queue %s", o.stream.OnFailure, dead.Name)
	}
	if !o.stream.Bisects {
		t.Error("BisectBatchOnFunctionError is off: a record whose handler crashes takes its batch with it")
	}
}

// Only a record's age ends its retries. Retries that fail at once would use up any number of
// attempts while a lease runs, or before somebody has repaired the cause.
func TestV2_StreamNeverGivesUpWhileALeaseRuns(t *testing.T) {
	o := deployedOutbox(t)
	if o.stream.Retries != -1 {
		t.Errorf("MaximumRetryAttempts is %d; invocations that fail at once use that up in minutes", o.stream.Retries)
	}
	const crashes = 5 // number of crashes in a row that a record must survive
	if least := crashes * (o.leaseOf(o.receipts) + o.receipts.Timeout); o.stream.MaxAge < least {
		t.Errorf("MaximumRecordAge is %v; %d crashes and their leases take %v", o.stream.MaxAge, crashes, least)
	}
}

// The maximum age gives operators hours to repair a failure, but a record that always fails does
// not delay payments for a day. The dead-letter queue gets only the position of a record that was
// given up, so the record must stay readable in the stream for at least 12 more hours.
func TestOutbox_RecordAgeLeavesTimeToMendAndTimeToRead(t *testing.T) {
	o := deployedOutbox(t)
	if o.stream.MaxAge < 4*time.Hour || o.stream.MaxAge > 8*time.Hour {
		t.Errorf("MaximumRecordAge is %v; want time to mend, and a shard that a bad record doesn't hold up for a day", o.stream.MaxAge)
	}
	if night := 12 * time.Hour; streamRetention-o.stream.MaxAge < night {
		t.Errorf("MaximumRecordAge is %v of the stream's %v; want %v at least to read what was given up", o.stream.MaxAge, streamRetention, night)
	}
}

// The function's timeout allows at least 400 ms for each record of a batch: to acquire the
// record, to send a message, and to commit a transaction.
func TestOutbox_BatchFitsIntoItsInvocation(t *testing.T) {
	o := deployedOutbox(t)
	if each := o.receipts.Timeout / time.Duration(o.stream.BatchSize); each < 400*time.Millisecond {
		t.Errorf("with BatchSize %d a record has %v of %v", o.stream.BatchSize, each, o.receipts.Timeout)
	}
	if o.stream.Window != 0 || o.queue.Window != 0 { // AWS Lambda, "Configuring scaling behavior for SQS event source mappings"
		t.Errorf("the windows are %v and %v; a receipt waits for nothing, and a FIFO queue has no window", o.stream.Window, o.queue.Window)
	}
}

// A message whose handler kills the process is received as often as the queue allows, and all
// messages in the same batch are received again with it. So a batch has one message.
func TestV2_MessageThatKillsTakesNoOtherAlong(t *testing.T) {
	if n := deployedOutbox(t).queue.BatchSize; n != 1 {
		t.Errorf("BatchSize is %d: a crash costs %d neighbours a delivery, and SQS bisects nothing", n, n-1)
	}
}

// The visibility timeout is longer than the lease of a dead attempt. Otherwise a redelivery could
// find the lease still running, and would use up a receive for nothing. AWS advises six times the
// function's timeout (AWS Lambda, "Creating and configuring an Amazon SQS event source mapping").
func TestV2_RedeliveryNeverMeetsALiveLease(t *testing.T) {
	o := deployedOutbox(t)
	q := o.named(t, "NotificationsQueue")
	if o.queue.ARN != arn(q) {
		t.Fatalf("the source is %s, want %s", o.queue.ARN, arn(q))
	}
	if lease := o.leaseOf(o.notifications); q.Visibility <= lease {
		t.Errorf("VisibilityTimeout is %v, a lease %v", q.Visibility, lease)
	}
	if advised := 6*o.notifications.Timeout + o.queue.Window; q.Visibility < advised {
		t.Errorf("VisibilityTimeout is %v; AWS advises %v", q.Visibility, advised)
	}
}

// AWS advises a maxReceiveCount of at least 5 (on the same page). A delivery also counts if it
// finds the message in progress or can't reach the table.
func TestV2_MessageHasEnoughDeliveries(t *testing.T) {
	o := deployedOutbox(t)
	q, dead := o.named(t, "NotificationsQueue"), o.named(t, "NotificationsDeadQueue")
	if q.MaxReceives < 5 {
		t.Errorf("maxReceiveCount is %d; AWS advises 5 at least", q.MaxReceives)
	}
	if q.Delay != 0 || dead.Delay != 0 {
		t.Errorf("the queues hold messages back for %v and %v", q.Delay, dead.Delay)
	}
	if !q.FIFO || q.ContentDeduplicates || !dead.FIFO || q.DeadLetter != arn(dead) || dead.DeadLetter != "" {
		t.Errorf("the queue is %+v and its dead letters go to %+v; want FIFO queues both, and deduplication by the sender's key alone", q, dead)
	}
}

// A dead-letter queue keeps messages for the maximum of 14 days (Amazon SQS, "Amazon SQS message
// quotas"), which is longer than the source keeps them. The queue itself keeps messages for four
// days, so that they survive a long weekend in which the function fails.
func TestOutbox_DeadLettersOutliveTheirQueue(t *testing.T) {
	o := deployedOutbox(t)
	const day, most = 24 * time.Hour, 14 * 24 * time.Hour
	q := o.named(t, "NotificationsQueue")
	for _, name := range []string{"NotificationsDeadQueue", "ReceiptsDeadQueue"} {
		if dead := o.named(t, name); dead.Retention != most || dead.Retention <= q.Retention || dead.Retention <= streamRetention {
			t.Errorf("%s keeps messages for %v; want %v, and more than the queue's %v", name, dead.Retention, most, q.Retention)
		}
	}
	if q.Retention < 4*day || q.Retention < time.Duration(q.MaxReceives)*q.Visibility {
		t.Errorf("the queue keeps messages for %v; want 4 days, and time for %d deliveries", q.Retention, q.MaxReceives)
	}
}
