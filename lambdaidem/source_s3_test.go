package lambdaidem_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// notification returns a notification of testdata, in the form in which S3 sends it.
func notification(t *testing.T, name string) events.S3EventRecord {
	t.Helper()
	var e events.S3Event
	if err := json.Unmarshal(fixture(t, name), &e); err != nil {
		t.Fatal(err)
	}
	return e.Records[0]
}

// All copies of a notification have one record, even if they differ in parts that do not identify
// them. Two notifications have two records.
func TestV3_CopiesOfANotification(t *testing.T) {
	type change = func(*events.S3EventRecord)
	for name, c := range map[string]struct {
		event  string
		change change
		same   bool
	}{
		"as it is":                    {"s3", func(*events.S3EventRecord) {}, true},
		"at another time":             {"s3", func(r *events.S3EventRecord) { r.EventTime = r.EventTime.Add(time.Second) }, true},
		"of another request":          {"s3", func(r *events.S3EventRecord) { r.ResponseElements = map[string]string{"x-amz-request-id": "1"} }, true},
		"of another rule":             {"s3", func(r *events.S3EventRecord) { r.S3.ConfigurationID = "other" }, true},
		"another sequencer":           {"s3", func(r *events.S3EventRecord) { r.S3.Object.Sequencer += "0" }, false},
		"another version":             {"s3", func(r *events.S3EventRecord) { r.S3.Object.VersionID = "v" }, false},
		"another object":              {"s3", func(r *events.S3EventRecord) { r.S3.Object.Key = "k" }, false},
		"another bucket":              {"s3", func(r *events.S3EventRecord) { r.S3.Bucket.Name = "b" }, false},
		"another event":               {"s3", func(r *events.S3EventRecord) { r.EventName = "ObjectTagging:Put" }, false},
		"no sequencer":                {"s3_restore", func(*events.S3EventRecord) {}, true},
		"of another request, without": {"s3_restore", func(r *events.S3EventRecord) { r.ResponseElements = map[string]string{"x-amz-request-id": "1"} }, false},
		"at another time, without":    {"s3_restore", func(r *events.S3EventRecord) { r.EventTime = r.EventTime.Add(time.Second) }, true},
		"another ETag, without":       {"s3_restore", func(r *events.S3EventRecord) { r.S3.Object.ETag = "e" }, false},
		"its request as a sequencer": {"s3_restore", func(r *events.S3EventRecord) {
			r.S3.Object.Sequencer, r.ResponseElements = r.ResponseElements["x-amz-request-id"], nil
		}, false},
	} {
		one, other := notification(t, c.event), notification(t, c.event)
		c.change(&other)
		runs := 0
		h := batchGuard().S3(func(context.Context, events.S3EventRecord) error { runs++; return nil }, func(o *lambdaidem.BatchOptions[events.S3EventRecord]) {
			o.Operation = "index"
		})
		for _, r := range []events.S3EventRecord{one, other} {
			if err := h(t.Context(), events.S3Event{Records: []events.S3EventRecord{r}}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if same := runs == 1; same != c.same || same != (lambdaidem.S3Key(one) == lambdaidem.S3Key(other)) {
			t.Errorf("%s: the handler ran %d times", name, runs)
		}
	}
	bare := events.S3EventRecord{EventTime: time.Unix(1, 0)}
	bare.S3.Object.Key = "k"
	later := bare
	later.EventTime = time.Unix(2, 0)
	if lambdaidem.S3Key(bare) == lambdaidem.S3Key(later) {
		t.Error("without a sequencer and a request, two times are one notification")
	}
	for name := range map[string]bool{"s3": true, "s3_restore": true} {
		if key := lambdaidem.S3Key(notification(t, name)); lambdaidem.PrintableKey(key) != nil || lambdaidem.TokenKey(key) != nil {
			t.Errorf("the key %q is none to a validator", key)
		}
	}
}

// The payload of a notification is the event's name and the object, but not the time, the version
// or the sequencer. The test uses one key for all notifications, so that payloads are compared.
func TestF5_TheContentOfANotification(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*events.S3EventRecord)
		same   bool
	}{
		"uploaded again": {func(r *events.S3EventRecord) {
			r.S3.Object.Sequencer, r.S3.Object.VersionID, r.EventTime = "1", "v", time.Unix(1, 0)
		}, true},
		"another content": {func(r *events.S3EventRecord) { r.S3.Object.ETag = "e" }, false},
		"another size":    {func(r *events.S3EventRecord) { r.S3.Object.Size++ }, false},
		"another object":  {func(r *events.S3EventRecord) { r.S3.Object.Key = "k" }, false},
		"another bucket":  {func(r *events.S3EventRecord) { r.S3.Bucket.Name = "b" }, false},
		"removed":         {func(r *events.S3EventRecord) { r.EventName = "ObjectRemoved:Delete" }, false},
	} {
		h := batchGuard().S3(func(context.Context, events.S3EventRecord) error { return nil }, silent[events.S3EventRecord], func(o *lambdaidem.BatchOptions[events.S3EventRecord]) {
			o.Key = func(context.Context, events.S3EventRecord) (string, error) { return "one", nil }
		})
		one, other := notification(t, "s3"), notification(t, "s3")
		c.change(&other)
		if err := h(t.Context(), events.S3Event{Records: []events.S3EventRecord{one}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := h(t.Context(), events.S3Event{Records: []events.S3EventRecord{other}}); errors.Is(err, lambdaidem.ErrPayloadMismatch) == c.same {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A notification without an object has no key, and one without a bucket has no source. The test
// event of S3 has no notifications.
func TestV3_MalformedNotifications(t *testing.T) {
	ran := false
	h := batchGuard().S3(func(context.Context, events.S3EventRecord) error { ran = true; return nil }, silent[events.S3EventRecord])
	noObject, noBucket := notification(t, "s3"), notification(t, "s3")
	noObject.S3.Object = events.S3Object{}
	noBucket.S3.Bucket = events.S3Bucket{}
	for want, r := range map[lambdaidem.Code]events.S3EventRecord{lambdaidem.ErrKeyMissing: noObject, lambdaidem.ErrRequestInvalid: noBucket} {
		if err := h(t.Context(), events.S3Event{Records: []events.S3EventRecord{r}}); !errors.Is(err, want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	var test events.S3Event
	if err := json.Unmarshal([]byte(`{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2026-01-02T12:45:07.123Z","Bucket":"amzn-s3-demo-bucket","RequestId":"5582815E1AEA5ADF","HostId":"x"}`), &test); err != nil {
		t.Fatal(err)
	}
	if err := h(t.Context(), test); err != nil || ran {
		t.Errorf("a test event: %v; the handler ran: %v", err, ran)
	}
}

// Two sequencers compare as strings, after the shorter one is padded with zeros on the right. For
// the source of this rule, see SortableSequencer.
func TestSortableSequencer_SortsAsS3Says(t *testing.T) {
	ascending := []string{"", "00055aed6dcd90281e6", "0055AED6DCD90281E4", "0055AED6DCD90281E4A0", "0055aed6dcd90281e5", "0055AED6DCD90281F", "1", "a", "B", "F01"}
	if !slices.IsSortedFunc(ascending, func(a, b string) int {
		return cmp.Compare(lambdaidem.SortableSequencer(a), lambdaidem.SortableSequencer(b))
	}) {
		t.Error("the forms don't ascend")
	}
	if got := lambdaidem.SortableSequencer("0055aed6dcd90281E0"); got != "0055AED6DCD90281E" {
		t.Errorf("the form is %s", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[0-9A-Fa-f]{1,30}`)
		a, b := digits.Draw(t, "a"), digits.Draw(t, "b")
		padded := func(s string) string { return strings.ToUpper(s) + strings.Repeat("0", 30-len(s)) }
		if got, want := cmp.Compare(lambdaidem.SortableSequencer(a), lambdaidem.SortableSequencer(b)), cmp.Compare(padded(a), padded(b)); got != want {
			t.Fatalf("%s and %s compare as %d; want %d", a, b, got, want)
		}
	})
}
