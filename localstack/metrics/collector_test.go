package metrics_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/metrics"
)

func TestLog_TakesDocumentsAlone(t *testing.T) {
	refused := strings.Replace(good, `"Count"`, `"ms"`, 1)
	written := "hello\n[Pay 7] " + good + "\n[Pay 7] {\"message\":\"hi\"}\n" + good + "\n[Pay 7] " + refused + "\nan end"
	kept := "hello\n[Pay 7] {\"message\":\"hi\"}\n[Pay 7] CloudWatch would make no metrics of this: the metric \"New\": CloudWatch has no unit \"ms\"\n[Pay 7] " + refused + "\nan end"
	var c metrics.Collector
	var log bytes.Buffer
	if n, err := c.Log(&log, false).Write([]byte(written)); n != len(written) || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
	if got := log.String(); got != kept {
		t.Errorf("the log has %q, want %q", got, kept)
	}
	if got := strings.Join(all(c.Take()), "; "); got != "N New Count map[service:s]: 2 values, 2" {
		t.Errorf("it took %s", got)
	}
	if got := all(c.Take()); got != nil {
		t.Errorf("it took %s again", got)
	}
}

func TestLog_KeepsDocumentsIfAsked(t *testing.T) {
	var c metrics.Collector
	var log bytes.Buffer
	if _, err := fmt.Fprintf(c.Log(&log, true), "[Pay 7] %s\n", good); err != nil || log.String() != "[Pay 7] "+good+"\n" {
		t.Errorf("%v, and the log has %q", err, log.String())
	}
	if got := all(c.Take()); len(got) != 1 {
		t.Errorf("it took %s", got)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

// Write returns the error of the underlying writer, but the metrics are still collected. If a
// Write contains only documents, nothing is written, so nothing can fail.
func TestLog_ThatCannotBeWritten(t *testing.T) {
	var c metrics.Collector
	if _, err := fmt.Fprintf(c.Log(broken{}, false), "%s\nhello\n", good); err == nil {
		t.Error("nobody hears of it")
	}
	if _, err := fmt.Fprintf(c.Log(broken{}, false), "%s\n", good); err != nil {
		t.Error(err)
	}
	if got := all(c.Take()); len(got) != 1 || !strings.Contains(got[0], "2 values") {
		t.Errorf("it took %s", got)
	}
}

// Take may be called while functions write.
func TestCollector_Concurrently(t *testing.T) {
	var c metrics.Collector
	var total metrics.Totals
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 250 {
				_, _ = fmt.Fprintln(c.Log(broken{}, false), good)
			}
		})
	}
	written := make(chan struct{})
	go func() {
		writers.Wait()
		close(written)
	}()
	for done := false; !done; {
		select {
		case <-written:
			done = true
		default:
		}
		total.Merge(c.Take())
	}
	if got := all(&total); len(got) != 1 || !strings.Contains(got[0], "1000 values") {
		t.Errorf("it took %s", got)
	}
}
