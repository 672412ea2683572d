package eventsource_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/template"
)

func fromStream() template.Source {
	return template.Source{ARN: streamARN, Table: "ledger", BatchSize: 100, Retries: -1, FromStart: true, ReportsFailures: true}
}

func TestStream_TheEventIsLambdas(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream.write("one")
		w.stream.record("one", map[string]any{
			"ApproximateCreationDateTime": 1.7e9, "SizeBytes": 26, "StreamViewType": "NEW_AND_OLD_IMAGES",
			"Keys": map[string]any{"id": map[string]any{"S": "x"}},
			"NewImage": map[string]any{
				"id": map[string]any{"S": "x"}, "n": map[string]any{"N": "1.50"}, "b": map[string]any{"B": "AQ=="},
				"t": map[string]any{"BOOL": true}, "z": map[string]any{"NULL": true},
				"ss": map[string]any{"SS": []string{"p", "q"}}, "ns": map[string]any{"NS": []string{"1"}}, "bs": map[string]any{"BS": []string{"AQ=="}},
				"m": map[string]any{"M": map[string]any{"in": map[string]any{"S": ""}}},
				"l": map[string]any{"L": []any{map[string]any{"N": "1"}, map[string]any{"L": []any{}}}},
			},
			"OldImage": map[string]any{"id": map[string]any{"S": "x"}},
		})
		w.start(succeeds, fromStream())
		synctest.Wait()
		// The event is that of "Using AWS Lambda with Amazon DynamoDB", with the field names of
		// the API's Record.
		want := `{"Records":[{"eventID":"event-101","eventName":"INSERT","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"us-east-1",` +
			`"dynamodb":{"ApproximateCreationDateTime":1700000000,"Keys":{"id":{"S":"x"}},` +
			`"NewImage":{"b":{"B":"AQ=="},"bs":{"BS":["AQ=="]},"id":{"S":"x"},"l":{"L":[{"N":"1"},{"L":[]}]},"m":{"M":{"in":{"S":""}}},"n":{"N":"1.50"},` +
			`"ns":{"NS":["1"]},"ss":{"SS":["p","q"]},"t":{"BOOL":true},"z":{"NULL":true}},"OldImage":{"id":{"S":"x"}},` +
			`"SequenceNumber":"101","SizeBytes":26,"StreamViewType":"NEW_AND_OLD_IMAGES"},"eventSourceARN":"` + streamARN + `"}]}`
		expect(t, "event", w.event(0).payload, want)
		expect(t, "function", w.event(0).function, "Consumer")
	})
}

func TestStream_ValuesAreNotEscapedForHTML(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream.write("one", "<&>")
		w.start(succeeds, fromStream())
		synctest.Wait()
		if want := `"Keys":{"id":{"S":"<&>"}}`; !strings.Contains(w.event(0).payload, want) {
			t.Errorf("%s lacks %s", w.event(0).payload, want)
		}
	})
}

func TestStream_WhoDeletedAnItemIsTold(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream.write("one", "a")
		w.stream.shard("one").records[0]["userIdentity"] = map[string]any{"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}
		w.start(succeeds, fromStream())
		synctest.Wait()
		if want := `"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"}`; !strings.Contains(w.event(0).payload, want) {
			t.Errorf("%s lacks %s", w.event(0).payload, want)
		}
	})
}

func TestStream_FromTrimHorizonEverythingComesInOrder(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream.write("one", "a", "b", "c", "d", "e")
		s := fromStream()
		s.BatchSize = 2
		w.start(succeeds, s)
		synctest.Wait()
		time.Sleep(time.Second)
		w.stream.write("one", "f")
		time.Sleep(250 * time.Millisecond)
		expect(t, "batches", w.batches(), []string{"a b", "c d", "e", "f"})
	})
}

func TestStream_FromLatestComesWhatIsWrittenAfterStart(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream.write("old", "a")
		w.stream.close("old")
		w.stream.open("open", "old")
		w.stream.write("open", "b")
		s := fromStream()
		s.FromStart = false
		w.start(succeeds, s)
		w.stream.write("open", "c") // the record counts even if the readers have not started yet
		w.stream.close("open")
		w.stream.open("child", "open")
		w.stream.write("child", "d")
		time.Sleep(10 * time.Second)
		expect(t, "batches", w.batches(), []string{"c", "d"})
	})
}

// A shard is read after its parent. If the parent is not listed, its records were trimmed, and
// the shard is read at once.
func TestStream_ShardsAreReadInTheOrderOfTheirLineage(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream.open("left", "root") // before its parent in the list
		w.stream.open("root", "gone")
		w.stream.open("right", "root")
		w.stream.open("leaf", "left")
		for _, shard := range []string{"leaf", "left", "right", "root"} {
			w.stream.write(shard, shard+"1", shard+"2")
		}
		w.stream.close("left")
		w.start(failsFirst("root1"), fromStream())
		time.Sleep(5 * time.Second)
		expect(t, "an open parent holds its children back", w.batches(), []string{"root1 root2", "root1 root2"})
		w.stream.close("root")
		time.Sleep(5 * time.Second)
		rest := w.batches()[2:]
		expect(t, "a parent first", slices.Index(rest, "left1 left2") < slices.Index(rest, "leaf1 leaf2"), true)
		slices.Sort(rest)
		expect(t, "batches", rest, []string{"leaf1 leaf2", "left1 left2", "right1 right2"})
	})
}

// failsFirst returns a function that fails once, for the first batch that begins with this
// record.
func failsFirst(name string) func(context.Context, event) (emulator.Result, error) {
	var failed atomic.Bool
	return func(ctx context.Context, e event) (emulator.Result, error) {
		if strings.HasPrefix(e.names(), name) && failed.CompareAndSwap(false, true) {
			return failure(name), nil
		}
		return succeeds(ctx, e)
	}
}

// The reading of a child shard does not begin while a batch of its parent is being retried.
func TestStream_AFailingParentHoldsItsChildBack(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream.write("root", "a")
		w.stream.close("root")
		w.stream.open("child", "root")
		w.stream.write("child", "b")
		w.start(failsOn("a"), fromStream())
		time.Sleep(time.Minute)
		all := w.batches()
		if slices.Contains(all, "b") || len(all) < 10 {
			t.Errorf("batches %q, want many of a and none of b", all)
		}
		// The pauses double from 100 ms up to 2 s.
		var gaps []time.Duration
		for i := range 7 {
			gaps = append(gaps, w.event(i+1).at.Sub(w.event(i).at)/time.Millisecond)
		}
		expect(t, "pauses", gaps, []time.Duration{100, 200, 400, 800, 1600, 2000, 2000})
	})
}

func TestStream_ABatchIsWhatComesWithinItsWindow(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream.open("one", "")
		s := fromStream()
		s.BatchSize, s.Window = 3, 10*time.Second
		w.start(succeeds, s)
		time.Sleep(time.Minute)
		begun := time.Now()
		w.stream.write("one", "a")
		time.Sleep(5 * time.Second)
		w.stream.write("one", "b")
		time.Sleep(6 * time.Second)
		expect(t, "batches", w.batches(), []string{"a b"})
		if after := w.event(0).at.Sub(begun).Round(time.Second); after != 10*time.Second {
			t.Errorf("delivered after %v, want 10 s", after)
		}
		w.stream.write("one", "c", "d", "e", "f")
		time.Sleep(time.Second)
		expect(t, "a full one is not waited for", w.batches(), []string{"a b", "c d e"})
		time.Sleep(10 * time.Second)
		expect(t, "batches", w.batches(), []string{"a b", "c d e", "f"})
	})
}

func TestStream_ALargeBatchTakesSeveralReads(t *testing.T) {
	bubble(t, func(w *world) {
		names := make([]string, 2500)
		for i := range names {
			names[i] = fmt.Sprint(i)
		}
		w.stream.write("one", names...)
		s := fromStream()
		s.BatchSize, s.Window = 10_000, time.Second
		w.start(succeeds, s)
		time.Sleep(5 * time.Second)
		expect(t, "batches", w.batches(), []string{strings.Join(names, " ")})
	})
}

func TestStream_AnInvocationTakesSixMegabytes(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream.open("one", "")
		for range 20 {
			w.stream.record("one", map[string]any{"Keys": map[string]any{"id": map[string]any{"S": "x"}}, "NewImage": map[string]any{"big": map[string]any{"S": strings.Repeat("x", 400_000)}}})
		}
		w.start(succeeds, fromStream())
		time.Sleep(time.Second)
		var sizes []int
		for i := range w.batches() {
			sizes = append(sizes, len(w.event(i).Records))
			expect(t, "fits", len(w.event(i).payload) <= 6<<20, true)
		}
		expect(t, "batches", sizes, []int{15, 5})
	})
}

// With a ParallelizationFactor, changes of one item stay in order, and changes of different items
// are delivered concurrently.
func TestStream_ParallelizationFactorKeepsTheOrderOfAKey(t *testing.T) {
	bubble(t, func(w *world) {
		var names []string
		for i := range 40 {
			names = append(names, fmt.Sprint("k", i%8))
		}
		w.stream.write("one", names...)
		s := fromStream()
		s.BatchSize, s.Concurrency = 1, 4
		running, most := 0, 0
		perKey := map[string][]string{}
		w.start(func(ctx context.Context, e event) (emulator.Result, error) {
			w.mu.Lock()
			running++
			most = max(most, running)
			perKey[e.names()] = append(perKey[e.names()], e.Records[0].DynamoDB.SequenceNumber)
			w.mu.Unlock()
			time.Sleep(time.Second)
			w.mu.Lock()
			running--
			w.mu.Unlock()
			return succeeds(ctx, e)
		}, s)
		time.Sleep(2 * time.Minute)
		expect(t, "invocations", len(w.batches()), 40)
		expect(t, "keys", len(perKey), 8)
		for key, sequence := range perKey {
			expect(t, key+" in order", slices.IsSorted(sequence) && len(sequence) == 5, true)
		}
		if most < 2 || most > 4 {
			t.Errorf("%d at once, want 2 to 4", most)
		}
	})
}

// A retry may take longer than the 15 minutes for which an iterator is valid.
func TestStream_ARetryMayOutliveTheIterator(t *testing.T) {
	for name, c := range map[string]struct {
		during func(w *world)
		want   []string
	}{
		"it goes on after the last record": {func(*world) {}, []string{"a", "b"}},
		"or at the first that is there": {func(w *world) {
			w.stream.write("one", "gone")
			w.stream.trim("one")
			w.stream.write("one", "c")
		}, []string{"a", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.stream.write("one", "a", "b")
				s := fromStream()
				s.BatchSize = 1
				slow := true
				w.start(func(ctx context.Context, e event) (emulator.Result, error) {
					if slow {
						slow = false
						time.Sleep(20 * time.Minute)
					}
					return succeeds(ctx, e)
				}, s)
				time.Sleep(time.Minute)
				c.during(w)
				time.Sleep(time.Hour)
				got := w.batches()
				if name != "it goes on after the last record" {
					got = slices.DeleteFunc(got, func(s string) bool { return s == "b" }) // b may have been read before it was trimmed
				}
				expect(t, "batches", got, c.want)
			})
		})
	}
}

// Reading goes on after records were trimmed, which happens after 24 hours, even if the iterator
// is still valid.
func TestStream_TrimmedRecordsArePassedOver(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream.write("one", "a", "b", "c", "d")
		s := fromStream()
		s.BatchSize = 1
		w.start(func(ctx context.Context, e event) (emulator.Result, error) {
			time.Sleep(time.Second)
			return succeeds(ctx, e)
		}, s)
		synctest.Wait() // a is being delivered, and b was read
		w.stream.trim("one")
		w.stream.write("one", "e")
		time.Sleep(time.Minute)
		expect(t, "batches", w.batches(), []string{"a", "b", "e"})
	})
}

func TestStream_AStreamThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	for action, problem := range map[string]string{
		"DescribeStream": "InternalServerError", "GetShardIterator": "InternalServerError", "GetRecords": "InternalServerError",
	} {
		t.Run(action, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.stream.write("one", "a")
				w.stream.breaks(action, problem, 4)
				w.start(succeeds, fromStream())
				time.Sleep(time.Minute)
				expect(t, "batches", w.batches(), []string{"a"})
				w.logs("InternalServerError")
			})
		})
	}

	// The first iterator expires before any record was read.
	for _, fromStart := range []bool{true, false} {
		bubble(t, func(w *world) {
			w.stream.write("one", "a")
			s := fromStream()
			s.FromStart = fromStart
			w.stream.breaks("GetRecords", "ExpiredIteratorException", 2)
			w.start(succeeds, s)
			time.Sleep(time.Minute)
			w.stream.write("one", "b")
			time.Sleep(time.Second)
			want := []string{"a", "b"}
			if !fromStart {
				want = want[1:]
				w.logs("it goes on at LATEST")
			}
			expect(t, "batches", w.batches(), want)
		})
	}
}

// An empty stream is polled four times a second, as by Lambda, so that polling costs little.
func TestStream_AnEmptyStreamIsPolledFourTimesASecond(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream.open("one", "")
		w.start(succeeds, fromStream())
		time.Sleep(10 * time.Second)
		records, described := w.stream.count("GetRecords"), w.stream.count("DescribeStream")
		time.Sleep(time.Minute)
		if n := w.stream.count("GetRecords") - records; n < 239 || n > 241 {
			t.Errorf("%d reads in a minute, want 240", n)
		}
		if n := w.stream.count("DescribeStream") - described; n < 59 || n > 61 {
			t.Errorf("%d looks for shards in a minute, want 60", n)
		}
	})
}

func TestStream_CloseWaitsForTheInvocationUnderWay(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream.write("one", "a", "b")
		s := fromStream()
		s.BatchSize = 1
		w.start(func(ctx context.Context, e event) (emulator.Result, error) {
			time.Sleep(10 * time.Second)
			return succeeds(ctx, e)
		}, s)
		synctest.Wait()
		begun := time.Now()
		expect(t, "Close", w.mappings.Close(), nil)
		expect(t, "Close took", time.Since(begun), 10*time.Second)
		time.Sleep(time.Minute)
		expect(t, "batches", w.batches(), []string{"a"})
	})
}

func TestStream_CloseEndsRetries(t *testing.T) {
	for _, function := range []func(context.Context, event) (emulator.Result, error){
		fails, func(context.Context, event) (emulator.Result, error) { return emulator.Result{}, errors.New("busy") },
	} {
		bubble(t, func(w *world) {
			w.stream.write("one", "a")
			w.start(function, fromStream())
			time.Sleep(time.Minute)
			n, begun := len(w.batches()), time.Now()
			expect(t, "Close", w.mappings.Close(), nil)
			expect(t, "Close took", time.Since(begun), 0)
			time.Sleep(time.Minute)
			expect(t, "attempts", len(w.batches()), n)
		})
	}
}
