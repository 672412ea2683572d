package eventsource_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/localstack/emulator"
)

const trimmed = "TrimmedDataAccessException"

// DynamoDB Local may return this error after the first write to a new table. No record is lost,
// so nothing is logged.
func TestStream_ATrimmedShardOfWhichNothingWasReadIsNoWord(t *testing.T) {
	for _, fromStart := range []bool{true, false} {
		bubble(t, func(w *world) {
			w.stream.open("one", "")
			s := fromStream()
			s.FromStart = fromStart
			w.start(succeeds, s)
			time.Sleep(time.Minute)
			w.stream.breaks("GetRecords", trimmed, 2)
			w.stream.write("one", "a")
			time.Sleep(time.Minute)
			w.stream.write("one", "b")
			time.Sleep(time.Second)
			expect(t, "batches", w.batches(), []string{"a", "b"})
			expect(t, "log", w.log.String(), "")
		})
	}
}

// The error is logged if it persists.
func TestStream_AShardThatStaysTrimmedIsSaid(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream.open("one", "")
		w.stream.breaks("GetRecords", trimmed, 1000)
		w.start(succeeds, fromStream())
		time.Sleep(10 * time.Second)
		w.logs("reading one: ")
		w.logs(trimmed)
	})
}

// Records that were trimmed before they were read may be lost, so the error is logged once,
// whether the iterator is still valid or has expired.
func TestStream_TrimmedRecordsAreSaid(t *testing.T) {
	for name, c := range map[string]struct {
		slow time.Duration
		want string
	}{
		"a good iterator":     {time.Second, "reading one: "},
		"an expired iterator": {20 * time.Minute, "records of one after 102 were trimmed before they were read: "},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.stream.write("one", "a", "b", "c", "d")
				s := fromStream()
				s.BatchSize = 1
				w.start(func(ctx context.Context, e event) (emulator.Result, error) {
					time.Sleep(c.slow)
					return succeeds(ctx, e)
				}, s)
				synctest.Wait() // a is being delivered, and b was read
				w.stream.trim("one")
				w.stream.write("one", "e")
				time.Sleep(3 * c.slow)
				expect(t, "batches", w.batches(), []string{"a", "b", "e"})
				said := 0
				for line := range strings.Lines(w.log.String()) {
					if strings.Contains(line, c.want) && strings.Contains(line, trimmed) {
						said++
					}
				}
				if said != 1 {
					t.Errorf("said %d times, want once %q:\n%s", said, c.want, w.log.String())
				}
			})
		})
	}
}
