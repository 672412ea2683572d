package eventsource_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A message that is received again within its batch's window is in the batch once, and is deleted
// with the handle of its last receive.
func TestV2_AMessageIsInABatchOnce(t *testing.T) {
	bubble(t, func(w *world) {
		q := w.create("orders", map[string]string{"VisibilityTimeout": "2"})
		s := fromQueue("orders")
		s.BatchSize, s.Window = 100, 9*time.Second
		w.start(succeeds, s)
		w.send(q, "", "a", "b")
		time.Sleep(5 * time.Second)
		w.send(q, "", "c")
		time.Sleep(time.Minute)
		expect(t, "records", len(w.event(0).Records), 3)
		var raw struct {
			Records []struct {
				ReceiptHandle string `json:"receiptHandle"`
			}
		}
		expect(t, "error", json.Unmarshal([]byte(w.event(0).payload), &raw), nil)
		for i, r := range w.event(0).Records {
			if r.Attributes["ApproximateReceiveCount"] < "2" {
				t.Errorf("%s is of its receive %s, want the last", r.Body, r.Attributes["ApproximateReceiveCount"])
			}
			expect(t, "handles are its own", strings.Count(w.event(0).payload, raw.Records[i].ReceiptHandle), 1)
		}
		expect(t, "batches", len(w.batches()), 1) // a message deleted with an old handle would be delivered again
		expect(t, "left", q.depth(), depth{})
	})
}

// Lambda refuses a mapping if the queue's visibility timeout is shorter than the function's
// timeout. AWS advises a visibility timeout of six times the function's timeout plus the window.
// The mapping warns if it is shorter than the function's timeout plus the window.
func TestSQS_AVisibilityTimeoutThatIsTooShortIsSaid(t *testing.T) {
	for _, c := range []struct {
		visibility string
		window     time.Duration
		want       string // the function's timeout is 3 s
	}{
		{"2", 0, "visibility timeout, 2s, is less than the function's timeout, 3s: Lambda refuses such a mapping"},
		{"2", 5 * time.Second, "visibility timeout, 2s, is less than the function's timeout, 3s: Lambda refuses such a mapping"},
		{"3", 0, ""},
		{"7", 5 * time.Second, "visibility timeout, 7s, is less than the function's timeout, 3s, and the batch's window, 5s, together: "},
		{"8", 5 * time.Second, ""},
	} {
		bubble(t, func(w *world) {
			w.create("orders", map[string]string{"VisibilityTimeout": c.visibility})
			s := fromQueue("orders")
			s.Window = c.window
			w.start(succeeds, s)
			synctest.Wait()
			if got := w.log.String(); (got != "") != (c.want != "") || !strings.Contains(got, c.want) || strings.Count(got, "\n") > 1 {
				t.Errorf("%s and %v: the log is %q, want %q", c.visibility, c.window, got, c.want)
			}
		})
	}
}
