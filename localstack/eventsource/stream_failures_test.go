package eventsource_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/localstack/emulator"
)

func TestV2_StreamReportsSetTheCheckpoint(t *testing.T) {
	for name, c := range map[string]struct {
		poison  []string
		bisects bool
		want    []string
	}{
		"lowest":                     {[]string{"d", "b"}, false, []string{"a b c d", "b c d", "b c d"}},
		"the first":                  {[]string{"a"}, false, []string{"a b c d", "a b c d", "a b c d"}},
		"all":                        {[]string{"a", "b", "c", "d"}, false, []string{"a b c d", "a b c d", "a b c d"}},
		"none":                       {nil, false, []string{"a b c d"}},
		"bisected at the checkpoint": {[]string{"c"}, true, []string{"a b c d", "c d", "c", "c", "c", "d"}},
		"bisected in the middle if nothing is before it": {[]string{"a"}, true, []string{"a b c d", "a b", "a", "a", "a", "b", "c d"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.stream.write("one", "a", "b", "c", "d")
				s := fromStream()
				s.ReportsFailures, s.Bisects, s.Retries = true, c.bisects, 2
				w.start(reports(c.poison...), s)
				time.Sleep(time.Minute)
				expect(t, "batches", w.batches(), c.want)
			})
		})
	}
}

// An invalid response fails the whole batch. Without ReportBatchItemFailures, the response is
// ignored.
func TestV2_StreamAnswersThatAreNone(t *testing.T) {
	for _, body := range []string{`{"batchItemFailures":[{"itemIdentifier":"102"},{"itemIdentifier":"999"}]}`, `{"batchItemFailures":[{"itemIdentifier":""}]}`, `"ok"`} {
		for _, reporting := range []bool{true, false} {
			bubble(t, func(w *world) {
				w.stream.write("one", "a", "b")
				s := fromStream()
				s.ReportsFailures, s.Retries = reporting, 1
				w.start(func(context.Context, event) (emulator.Result, error) { return answer([]byte(body)) }, s)
				time.Sleep(time.Minute)
				want := []string{"a b"}
				if reporting {
					want = append(want, "a b")
				}
				expect(t, body, w.batches(), want)
			})
		}
	}
}

// Bisecting finds the failing record even with one retry: "Splitting a batch doesn't count
// towards the retry quota."
func TestStream_BisectFindsTheRecordThatFails(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream.write("one", "a", "b", "c", "d", "e")
		s := fromStream()
		s.Bisects, s.Retries = true, 1
		w.start(failsOn("d"), s)
		time.Sleep(time.Minute)
		expect(t, "batches", w.batches(), []string{"a b c d e", "a b", "c d e", "c", "d e", "d", "d", "e"})
		w.logs("bisected: 2 records and 3 records")
		w.logs("1 records of one are given up, 104 to 104: RetryAttemptsExhausted")
	})
}

func TestStream_WithoutBisectTheWholeBatchIsRetriedAndGivenUp(t *testing.T) {
	for retries, want := range [][]string{{"a b", "c"}, {"a b", "a b", "c"}, {"a b", "a b", "a b", "c"}} {
		bubble(t, func(w *world) {
			w.stream.write("one", "a", "b", "c")
			s := fromStream()
			s.BatchSize, s.Retries = 2, retries
			w.start(failsOn("a"), s)
			time.Sleep(time.Minute)
			expect(t, "batches", w.batches(), want)
		})
	}
}

// The reports follow "Retain discarded records for a DynamoDB event source in Lambda".
func TestStream_WhatIsGivenUpIsToldToOnFailure(t *testing.T) {
	for name, c := range map[string]struct {
		reporting     bool
		functionError string
		first         string
		size          int
	}{
		"an error":  {false, `"Unhandled"`, "101", 3},
		"a report":  {true, `null`, "102", 2}, // the record before the checkpoint has succeeded
		"no report": {true, `null`, "101", 3},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				dead := w.create("dead", nil)
				w.stream.write("one", "a", "b")
				time.Sleep(90 * time.Second)
				w.stream.write("one", "c", "d")
				time.Sleep(1500 * time.Millisecond)
				s := fromStream()
				s.BatchSize, s.Retries, s.OnFailure, s.ReportsFailures = 3, 2, head+"dead", c.reporting
				w.start(func(ctx context.Context, e event) (emulator.Result, error) {
					switch {
					case e.names() == "d":
						return succeeds(ctx, e)
					case name == "a report":
						return answer(e.reporting("b"))
					case name == "no report":
						return answer([]byte(`[]`))
					}
					return failure("no"), nil
				}, s)
				time.Sleep(time.Minute)
				got := w.batches()
				expect(t, "invocations", len(got), 4)
				expect(t, "the next record proceeds", got[3], "d")
				told := w.receive(dead)
				want := `{"requestContext":{"requestId":"request","functionArn":"arn:aws:lambda:us-east-1:000000000000:function:consumer",` +
					`"condition":"RetryAttemptsExhausted","approximateInvokeCount":3},` +
					`"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":` + c.functionError + `},` +
					`"version":"1.0","timestamp":"2000-01-01T00:01:31.800Z","DDBStreamBatchInfo":{"shardId":"one","startSequenceNumber":"` + c.first + `","endSequenceNumber":"103",` +
					`"approximateArrivalOfFirstRecord":"2000-01-01T00:00:00Z","approximateArrivalOfLastRecord":"2000-01-01T00:01:30Z",` +
					fmt.Sprintf(`"batchSize":%d,"streamArn":"%s"}}`, c.size, endpointARN)
				expect(t, "told", told, []string{want})
			})
		})
	}
}

func TestStream_AQueueThatCannotBeToldHoldsNothingBack(t *testing.T) {
	bubble(t, func(w *world) {
		dead := w.create("dead", nil)
		s := fromStream()
		s.BatchSize, s.Retries, s.OnFailure = 1, 0, head+"dead"
		w.start(failsOn("a"), s)
		dead.delete()
		w.stream.write("one", "a", "b")
		time.Sleep(time.Minute)
		expect(t, "batches", w.batches(), []string{"a", "b"})
		w.logs("telling dead of it: ")
	})
}

// Records that are too old are given up before the next attempt, even if there was no attempt
// yet. Younger records are still delivered.
func TestStream_MaximumRecordAge(t *testing.T) {
	t.Run("never invoked", func(t *testing.T) {
		bubble(t, func(w *world) {
			dead := w.create("dead", nil)
			time.Sleep(time.Second) // so that the records are not created at a full minute
			w.stream.write("one", "a", "b")
			time.Sleep(time.Minute)
			w.stream.write("one", "c")
			time.Sleep(time.Second)
			s := fromStream()
			s.MaxAge, s.OnFailure = time.Minute, head+"dead"
			w.start(succeeds, s)
			synctest.Wait()
			expect(t, "batches", w.batches(), []string{"c"})
			told := w.receive(dead)
			expect(t, "told", len(told), 1)
			for _, want := range []string{`"condition":"RecordAgeExceeded","approximateInvokeCount":0},"version"`, `"startSequenceNumber":"101","endSequenceNumber":"102"`, `"batchSize":2`} {
				if !strings.Contains(told[0], want) {
					t.Errorf("%s lacks %s", told[0], want)
				}
			}
			expect(t, "it has an id", strings.Contains(told[0], `"requestId":""`), false)
		})
	})

	t.Run("while it is retried", func(t *testing.T) {
		bubble(t, func(w *world) {
			time.Sleep(time.Second)
			w.stream.write("one", "a", "b")
			begun := time.Now()
			s := fromStream()
			s.MaxAge, s.BatchSize = time.Minute, 1
			w.start(failsOn("a"), s)
			time.Sleep(5 * time.Minute)
			w.logs("1 records of one are given up, 101 to 101: RecordAgeExceeded")
			w.logs("1 records of one are given up, 102 to 102: RecordAgeExceeded") // b got too old too, while it waited for a
			n := len(w.batches())
			expect(t, "last", w.event(n-1).names(), "a")
			if last := w.event(n - 1).at.Sub(begun); last > time.Minute || last < 55*time.Second {
				t.Errorf("the last attempt is after %v", last)
			}
		})
	})

	// DynamoDB Local rounds creation times down to the minute: a record of 00:00:59 has the time
	// 00:00:00.
	t.Run("times rounded to the minute", func(t *testing.T) {
		bubble(t, func(w *world) {
			w.stream.write("one", "a") // at :00
			time.Sleep(100 * time.Second)
			s := fromStream()
			s.MaxAge = time.Minute
			w.start(succeeds, s)
			synctest.Wait()
			expect(t, "batches", w.batches(), []string{"a"})
			w.stream.write("one", "b") // at :40
			time.Sleep(time.Second)
			expect(t, "batches", w.batches(), []string{"a", "b"})
		})
	})

	t.Run("but never from before it came", func(t *testing.T) {
		bubble(t, func(w *world) {
			s := fromStream()
			s.MaxAge = time.Minute
			w.start(failsOn("a"), s)
			time.Sleep(time.Minute)
			begun := time.Now()
			w.stream.write("one", "a") // at :00
			time.Sleep(5 * time.Minute)
			n := len(w.batches())
			if last := w.event(n - 1).at.Sub(begun); last > 62*time.Second {
				t.Errorf("the last attempt is after %v", last)
			}
		})
	})
}

// An invocation that was refused is retried, and does not count as one of MaximumRetryAttempts
// ("Before invocation").
func TestStream_ARefusedInvocationCostsNoRetry(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream.write("one", "a")
		s := fromStream()
		s.Retries = 1
		attempt := 0
		w.start(func(ctx context.Context, e event) (emulator.Result, error) {
			switch attempt++; {
			case attempt <= 5:
				return emulator.Result{}, errors.New("busy")
			case attempt == 6:
				return fails(ctx, e)
			}
			return succeeds(ctx, e)
		}, s)
		time.Sleep(time.Minute)
		expect(t, "invocations", len(w.batches()), 7)
		w.logs("1 records of one were not delivered, they are retried: busy")
		expect(t, "given up", strings.Contains(w.log.String(), "given up"), false)
	})
}

// A poison record stops its whole shard even with a ParallelizationFactor: the reader blocks when
// it has more records for the lane that is stuck.
func TestStream_APoisonRecordStopsAllPartsOfItsShard(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream.write("one", "poison", "poison", "poison", "poison", "k") // three reads
		s := fromStream()
		s.BatchSize, s.Concurrency, s.Retries = 1, 2, 3
		w.start(failsOn("poison"), s)
		time.Sleep(1390 * time.Millisecond) // a record's retries take 700 ms, and two were read
		expect(t, "nothing else meanwhile", slices.Contains(w.batches(), "k"), false)
		time.Sleep(time.Minute)
		expect(t, "then the others", slices.Contains(w.batches(), "k"), true)
	})
}
