package eventsource_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/localstack/eventsource"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// Start returns an error for mappings that Lambda would refuse ("CreateEventSourceMapping"), and
// for queues and streams that don't exist.
func TestD1_StartRefusesWhatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		source  template.Source
		options func(*eventsource.Options)
		want    string
	}{
		"no such queue":         {fromQueue("other"), nil, "finding the queue other: "},
		"no queue":              {template.Source{ARN: "arn:aws:sns:us-east-1:000000000000:topic", BatchSize: 1}, nil, "is not the ARN of a queue"},
		"FIFO batch":            {template.Source{ARN: head + "orders.fifo", BatchSize: 11, Window: time.Second}, nil, "BatchSize is 11, and 10 at most for a FIFO queue"},
		"FIFO window":           {template.Source{ARN: head + "orders.fifo", BatchSize: 1, Window: time.Second}, nil, "a FIFO queue has no MaximumBatchingWindowInSeconds"},
		"large without window":  {template.Source{ARN: head + "orders", BatchSize: 11}, nil, "a BatchSize over 10 needs a MaximumBatchingWindowInSeconds of at least 1"},
		"no SQS":                {fromQueue("orders"), func(o *eventsource.Options) { o.SQS = nil }, "it reads a queue, and Options.SQS is missing"},
		"no stream":             {template.Source{Table: "other", BatchSize: 1}, nil, "table other has no stream"},
		"no Streams":            {fromStream(), func(o *eventsource.Options) { o.Streams = nil }, "it reads a stream, and Options.Streams is missing"},
		"OnFailure is FIFO":     {onFailure(head + "orders.fifo"), nil, "only a standard SQS queue is emulated"},
		"OnFailure is a topic":  {onFailure("arn:aws:sns:us-east-1:000000000000:topic"), nil, "OnFailure is arn:aws:sns:us-east-1:000000000000:topic"},
		"OnFailure is no queue": {onFailure(head + "other"), nil, "finding the queue other, its OnFailure: "},
		"OnFailure without SQS": {onFailure(head + "orders"), func(o *eventsource.Options) { o.SQS = nil }, "its OnFailure is a queue, and Options.SQS is missing"},
		"no template":           {fromQueue("orders"), func(o *eventsource.Options) { o.Template = nil }, "Options.Template and Options.Invoke are required"},
		"no function":           {fromQueue("orders"), func(o *eventsource.Options) { o.Invoke = nil }, "Options.Template and Options.Invoke are required"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.create("orders", nil)
				w.create("orders.fifo", map[string]string{"FifoQueue": "true"})
				o := w.options(succeeds, c.source)
				if c.options != nil {
					c.options(&o)
				}
				if _, err := eventsource.Start(w.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want one that says %q", err, c.want)
				} else if o.Template != nil && o.Invoke != nil && !strings.HasPrefix(err.Error(), "eventsource: Consumer/Source: ") {
					t.Errorf("error %v does not name the source", err)
				}
			})
		})
	}
}

func onFailure(arn string) template.Source {
	s := fromStream()
	s.OnFailure = arn
	return s
}

// Start returns the error of each request that it sends to find the stream and its position.
func TestD1_StartFailsWithItsStream(t *testing.T) {
	for _, action := range []string{"ListStreams", "DescribeStream", "GetShardIterator"} {
		bubble(t, func(w *world) {
			w.stream.open("one", "")
			w.stream.breaks(action, "InternalServerError", 1)
			s := fromStream()
			s.FromStart = false
			if _, err := eventsource.Start(w.Context(), w.options(succeeds, s)); err == nil || !strings.Contains(err.Error(), "InternalServerError") {
				t.Errorf("%s: error %v", action, err)
			}
		})
	}
}

// A source doesn't wait for the other sources of its function or of other functions.
func TestStart_DeliversEverySource(t *testing.T) {
	bubble(t, func(w *world) {
		orders, refunds := w.create("orders", nil), w.create("refunds", nil)
		w.send(orders, "", "a")
		w.send(refunds, "", "b")
		w.stream.write("one", "c")
		o := w.options(failsOn("a"), fromQueue("orders"), fromStream())
		o.Template.Functions = append(o.Template.Functions, &template.Function{LogicalID: "Other", Name: "other", Sources: []template.Source{fromQueue("refunds")}})
		o.Log = io.Discard
		mappings, err := eventsource.Start(w.Context(), o)
		expect(t, "error", err, nil)
		time.Sleep(time.Second)
		got := map[string]string{}
		for i := range w.batches() {
			got[w.event(i).names()] = w.event(i).function
		}
		expect(t, "events", got, map[string]string{"a": "Consumer", "b": "Other", "c": "Consumer"})
		expect(t, "Close", mappings.Close(), nil)
	})
}
