package dynamostore

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// noise returns bytes that can't be compressed and are not UTF-8.
func noise(size int) string {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(size)}).Read(b) // never fails
	return string(b)
}

// asked describes one attempt that was sent.
type asked struct {
	operation string
	id        string // the id of the item
}

func (r asked) isPart(n int) bool {
	return strings.HasPrefix(r.id, fmt.Sprintf("%s#%d#", claim.ID, n))
}

// selective is a wire that chooses a fault for each request, because parts are sent in any order.
type selective struct {
	*faultyWire
	choose func(asked) fault // returns nil to let the request pass
}

func (s *selective) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var in struct {
		Key, Item map[string]struct{ S string }
	}
	_ = json.Unmarshal(body, &in) // requests of other operations have no such members
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	f := s.choose(asked{operation, in.Key[attrID].S + in.Item[attrID].S})
	if f == nil {
		f = pass
	}
	s.mu.Lock()
	s.sent = append(s.sent, operation)
	s.mu.Unlock()
	return f(r, s.next)
}

// overSelective returns a client whose HTTP requests go through choose.
func overSelective(client *dynamodb.Client, choose func(asked) fault) (*dynamodb.Client, *faultyWire) {
	s := &selective{&faultyWire{next: client.Options().HTTPClient}, choose}
	return dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.HTTPClient = s }), s.faultyWire
}

// completes takes the lease and stores the result.
func completes(t *testing.T, s *Store, c lambdaidem.Claim, r lambdaidem.Result) lambdaidem.Record {
	t.Helper()
	if _, err := s.Acquire(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	rec, err := s.Complete(t.Context(), lambdaidem.Lease{ID: c.ID, Token: c.Token}, r)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// itemOf returns the item with the given id, or nil if there is none.
func itemOf(t *testing.T, client *dynamodb.Client, table, id string) attributes {
	t.Helper()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(table), Key: attributes{attrID: str(id)}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

func putItem(t *testing.T, client *dynamodb.Client, table string, item attributes) {
	t.Helper()
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: item}); err != nil {
		t.Fatal(err)
	}
}

// partIDs returns the keys of a record's parts.
func partIDs(t *testing.T, r lambdaidem.Record) []string {
	t.Helper()
	a, ok := r.Result.Apart.(*apart)
	if !ok {
		t.Fatalf("the answer is not kept apart: %+v", r.Result)
	}
	var ids []string
	for n := range a.Parts.Count {
		ids = append(ids, partID(r.ID, a.Parts.Checksum, n+1))
	}
	return ids
}

// A guard stores and replays any 6 MB byte for byte. A request with another payload reads no parts.
func TestR3_SixMegabytesAreReplayedByteForByte(t *testing.T) {
	client, table := freshTable(t)
	counted, w := over(client)
	random := noise(6 << 20)
	for name, first := range map[string]events.APIGatewayV2HTTPResponse{
		"bytes":  {StatusCode: 200, Headers: map[string]string{"Content-Type": "image/png"}, Body: random},
		"base64": {StatusCode: 200, IsBase64Encoded: true, Body: base64.StdEncoding.EncodeToString([]byte(random[:6<<20*3/4]))},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			guard := lambdaidem.New(New(counted, table, patient), func(o *lambdaidem.Options) { o.Namespace = "large" })
			handle := guard.APIGatewayV2(func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
				runs++
				return first, nil
			})
			send := func(body string) events.APIGatewayV2HTTPResponse {
				in := events.APIGatewayV2HTTPRequest{RouteKey: "POST /" + name, RawPath: "/" + name, Body: body,
					Headers: map[string]string{"idempotency-key": "key-1"}}
				in.RequestContext.HTTP.Method = http.MethodPost
				out, err := handle(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			if out := send("a"); out.Body != first.Body {
				t.Error("the first answer is another")
			}
			w.sent = nil
			out := send("a")
			if out.StatusCode != 200 || out.Body != first.Body || out.IsBase64Encoded != first.IsBase64Encoded || out.Headers["X-Idempotency-Replayed"] != "true" {
				t.Errorf("the replay is %d with %d bytes, %v", out.StatusCode, len(out.Body), out.Headers)
			}
			if w.sent[0] != "PutItem" || len(w.sent) < 20 || slices.ContainsFunc(w.sent[1:], func(op string) bool { return op != "GetItem" }) {
				t.Errorf("the replay sent %v", w.sent)
			}
			w.sent = nil
			if out := send("b"); out.StatusCode != http.StatusUnprocessableEntity {
				t.Errorf("a mismatch is %d", out.StatusCode)
			}
			if diff := cmp.Diff([]string{"PutItem"}, w.sent); diff != "" || runs != 1 {
				t.Errorf("a mismatch sent %v; the handler ran %d times", w.sent, runs)
			}
		})
	}
}

// An answer of any length comes back whole, and Complete returns the same record as Get.
func TestR3_AnAnswerOfAnyLengthComesBackWhole(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient)
	for _, size := range []int{0, 1, 2<<10 - 1, 2 << 10, 20<<10 - 1, 20 << 10, 20<<10 + 1, partSize - 1, partSize, partSize + 1, 2 * partSize, 5*partSize + 7} {
		for name, value := range map[string]string{"text": strings.Repeat("payment ", size/8+1)[:size], "noise": noise(size)} {
			t.Run(fmt.Sprintf("%d bytes of %s", size, name), func(t *testing.T) {
				c := claim
				c.ID = t.Name()
				done := completes(t, s, c, withValue([]byte(value)))
				got, err := s.Get(t.Context(), c.ID, now)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(done, got); diff != "" {
					t.Errorf("returned - stored +:\n%s", diff)
				}
				loaded, err := s.Load(t.Context(), got)
				if err != nil || string(loaded.Value) != value || loaded.Apart != nil || loaded.Failure != nil || loaded.Outcome != result.Outcome {
					t.Errorf("loaded %d bytes, %v", len(loaded.Value), err)
				}
				if size > 0 && len(loaded.Value) > 0 && sizeOf(itemOf(t, client, table, c.ID)) > 21<<10 {
					t.Error("a replay costs more than 21 units")
				}
			})
		}
	}
}

// The text of a failure may have any size.
func TestR3_AFailureOfAnySizeComesBackWhole(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient)
	for name, message := range map[string]string{"small": "declined", "text": strings.Repeat("declined ", 100_000), "noise": noise(1 << 20)} {
		t.Run(name, func(t *testing.T) {
			c := claim
			c.ID = t.Name()
			completes(t, s, c, failedWith(message))
			got, err := s.Get(t.Context(), c.ID, now)
			if err != nil {
				t.Fatal(err)
			}
			if small := got.Result.Failure != nil; small != (name == "small") {
				t.Errorf("the record itself has the failure: %v", small)
			}
			loaded, err := s.Load(t.Context(), got)
			want := failedWith(validUTF8(message))
			if loaded.Failure == nil || loaded.Failure.Code != "c" || loaded.Failure.Type != "T" || loaded.Failure.Status != 500 ||
				loaded.Value != nil || loaded.Outcome != want.Outcome {
				t.Fatalf("loaded %.200v, %v", loaded, err)
			}
			// encoding/json and validUTF8 replace a run of invalid bytes with different numbers of
			// U+FFFD.
			if drop := strings.NewReplacer("\uFFFD", ""); drop.Replace(loaded.Failure.Message) != drop.Replace(want.Failure.Message) {
				t.Errorf("the message has %d bytes", len(loaded.Failure.Message))
			}
		})
	}
}

// If the parts of an answer are not those that were completed, no part of the answer is replayed,
// and it is lost for good.
func TestR3_ADamagedAnswerIsNeverReplayed(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient)
	binary := func(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }
	dataOf := func(item attributes) []byte { return item[attrData].(*types.AttributeValueMemberB).Value }
	// edit changes an item in the table.
	edit := func(t *testing.T, id string, change func(attributes)) {
		item := itemOf(t, client, table, id)
		change(item)
		putItem(t, client, table, item)
	}
	member := func(name string, v types.AttributeValue) func(*testing.T, lambdaidem.Record) {
		return func(t *testing.T, r lambdaidem.Record) {
			edit(t, r.ID, func(a attributes) { a[attrParts].(*types.AttributeValueMemberM).Value[name] = v })
		}
	}
	large, small := withValue([]byte(noise(3*partSize))), withValue(bytes.Repeat([]byte("payment "), 1000))
	for _, c := range []struct {
		name   string
		result lambdaidem.Result
		damage func(*testing.T, lambdaidem.Record)
	}{
		{"a part is missing", large, func(t *testing.T, r lambdaidem.Record) {
			_, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: s.key(partIDs(t, r)[1])})
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"two parts are swapped", large, func(t *testing.T, r lambdaidem.Record) {
			ids := partIDs(t, r)
			one, two := itemOf(t, client, table, ids[0]), itemOf(t, client, table, ids[1])
			one[attrData], two[attrData] = two[attrData], one[attrData]
			putItem(t, client, table, one)
			putItem(t, client, table, two)
		}},
		{"a part is another attempt's", large, func(t *testing.T, r lambdaidem.Record) {
			other := claimBy("another token")
			other.ID = r.ID + " of another"
			theirs := completes(t, s, other, withValue([]byte(noise(3*partSize+1))))
			edit(t, partIDs(t, r)[0], func(a attributes) { a[attrData] = itemOf(t, client, table, partIDs(t, theirs)[0])[attrData] })
		}},
		{"a part is cut short", large, func(t *testing.T, r lambdaidem.Record) {
			edit(t, partIDs(t, r)[2], func(a attributes) { a[attrData] = binary(dataOf(a)[:100]) })
		}},
		{"a part has another byte", large, func(t *testing.T, r lambdaidem.Record) {
			edit(t, partIDs(t, r)[2], func(a attributes) { dataOf(a)[100] ^= 1 })
		}},
		{"a part is text", large, func(t *testing.T, r lambdaidem.Record) {
			edit(t, partIDs(t, r)[0], func(a attributes) { a[attrData] = str("text") })
		}},
		{"a part is left out", large, member(partsCount, number(2))},
		{"a part is counted too many", large, member(partsCount, number(4))},
		{"the checksum is another", large, member(partsChecksum, binary(make([]byte, 32)))},
		{"the length is less", large, member(partsLength, number(3*partSize-1))},
		{"the compressed length is less", small, member(partsLength, number(7999))},
		{"the compressed length is more", small, member(partsLength, number(8001))},
		{"the compressed length is absurd", small, member(partsLength, number(maxAnswerBound))},
		{"the compressed checksum is another", small, member(partsChecksum, binary(make([]byte, 32)))},
		{"the compressed answer is another record's", small, func(t *testing.T, r lambdaidem.Record) {
			other := claim
			other.ID = r.ID + " of another"
			theirs := itemOf(t, client, table, completes(t, s, other, small).ID)
			edit(t, r.ID, func(a attributes) { a[attrData], a[attrParts] = theirs[attrData], theirs[attrParts] })
		}},
		{"the compressed answer is cut short", small, func(t *testing.T, r lambdaidem.Record) {
			edit(t, r.ID, func(a attributes) { a[attrData] = binary(dataOf(a)[:len(dataOf(a))-1]) })
		}},
		{"the compressed answer has another byte", small, func(t *testing.T, r lambdaidem.Record) {
			edit(t, r.ID, func(a attributes) { dataOf(a)[len(dataOf(a))-6] ^= 1 }) // changes the checksum of gzip
		}},
		{"the compressed answer is no gzip", small, func(t *testing.T, r lambdaidem.Record) {
			edit(t, r.ID, func(a attributes) { a[attrData] = binary([]byte(noise(100))) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := claim
			cl.ID = t.Name()
			done := completes(t, s, cl, c.result)
			if loaded, err := s.Load(t.Context(), done); err != nil || !bytes.Equal(loaded.Value, c.result.Value) {
				t.Fatalf("before the damage: %d bytes, %v", len(loaded.Value), err)
			}
			c.damage(t, done)
			rec, err := s.Get(t.Context(), cl.ID, now)
			if err != nil {
				t.Fatal(err)
			}
			loaded, err := s.Load(t.Context(), rec)
			wantStoreError(t, err, opLoad, lambdaidem.ReasonForeign, true)
			if c.name == "a part is missing" && !strings.Contains(err.Error(), "part 2 of 3 is missing") {
				t.Errorf("error %q doesn't say what is wrong", err)
			}
			if diff := cmp.Diff(lambdaidem.Result{}, loaded); diff != "" {
				t.Errorf("beside the error it loaded %d bytes", len(loaded.Value))
			}
		})
	}
}

// A missing part does not prove that the answer is lost if the record has changed too: it may have
// been purged, or have expired and been locked again. A retry reads the record's current state.
func TestR3_AnAnswerWhoseRecordChangedMeanwhileIsAskedForAgain(t *testing.T) {
	client, table := freshTable(t)
	for name, change := range map[string]func(*testing.T, *Store){
		"it is gone": func(t *testing.T, s *Store) {
			_, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: s.key(claim.ID)})
			if err != nil {
				t.Fatal(err)
			}
		},
		"it is another attempt's": func(t *testing.T, s *Store) {
			putItem(t, client, table, s.layout.attributes(claimed(claimBy("token-2"))))
		},
		"it is another attempt's, with another answer": func(t *testing.T, s *Store) {
			putItem(t, client, table, attributes{attrID: str(claim.ID), attrToken: str("old"), attrStatus: str("RELEASED"), attrExpiration: number(1)})
			completes(t, s, claimBy("token-2"), withValue([]byte(noise(2*partSize))))
		},
		"it is the same attempt's, without its answer": func(t *testing.T, s *Store) {
			itm := claimed(claim)
			itm.finish(failedWith("purged"))
			putItem(t, client, table, s.layout.attributes(itm))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(client, table, patient)
			putItem(t, client, table, attributes{attrID: str(claim.ID), attrToken: str("old"), attrStatus: str("RELEASED"), attrExpiration: number(1)})
			done := completes(t, s, claim, withValue([]byte(noise(2*partSize))))
			for _, id := range partIDs(t, done) {
				if _, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: s.key(id)}); err != nil {
					t.Fatal(err)
				}
			}
			change(t, s)
			_, err := s.Load(t.Context(), done)
			wantStoreError(t, err, opLoad, lambdaidem.ReasonUnknown, true)
			if _, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: s.key(claim.ID)}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// The record is damaged too, so nothing shows that it has changed. The answer is lost for good, and
// the error names the missing part.
func TestR3_AMissingPartIsNamedEvenIfTheRecordIsDamagedToo(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient)
	done := completes(t, s, claim, withValue([]byte(noise(2*partSize))))
	if _, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: s.key(partIDs(t, done)[1])}); err != nil {
		t.Fatal(err)
	}
	putItem(t, client, table, attributes{attrID: str(claim.ID), attrStatus: str("none of ours")})
	_, err := s.Load(t.Context(), done)
	wantStoreError(t, err, opLoad, lambdaidem.ReasonForeign, true)
	if !strings.Contains(err.Error(), "part 2 of 2 is missing") {
		t.Errorf("error %q doesn't name the part", err)
	}
}

// If the read of a part fails, the error says why, and not that the answer is lost. The reads are
// consistent.
func TestR3_AReadOfAPartThatFailsIsNoLoss(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient)
	done := completes(t, s, claim, withValue([]byte(noise(4*partSize))))
	for _, c := range []struct {
		name   string
		fault  fault
		reason lambdaidem.Reason
	}{
		{"throttled", throttle, lambdaidem.ReasonThrottled},
		{"request lost", loseRequest, lambdaidem.ReasonUnreachable},
		{"no connection", refuseConnection, lambdaidem.ReasonUnreachable},
		{"no permission", refuseAs("AccessDeniedException"), lambdaidem.ReasonPermission},
		{"500", answer500AfterWrite, lambdaidem.ReasonUnknown},
	} {
		for _, which := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, part %d", c.name, which), func(t *testing.T) {
				faulty, _ := overSelective(client, func(r asked) fault {
					if r.isPart(which) {
						return c.fault
					}
					return nil
				})
				loaded, err := New(faulty, table, quick, patient).Load(t.Context(), done)
				wantStoreError(t, err, opLoad, c.reason, true)
				if loaded.Value != nil {
					t.Errorf("beside the error it loaded %d bytes", len(loaded.Value))
				}
			})
		}
	}
	t.Run("the record, once a part is missing", func(t *testing.T) {
		faulty, _ := overSelective(client, func(r asked) fault {
			switch {
			case r.isPart(2):
				return succeed // an empty response
			case r.id == claim.ID:
				return throttle
			}
			return nil
		})
		_, err := New(faulty, table, quick, patient).Load(t.Context(), done)
		wantStoreError(t, err, opLoad, lambdaidem.ReasonThrottled, true)
	})
	t.Run("consistently", func(t *testing.T) {
		var eventual atomic.Int64
		faulty, _ := overSelective(client, func(asked) fault {
			return func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				if !bytes.Contains(body, []byte(`"ConsistentRead":true`)) {
					eventual.Add(1)
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				return next.Do(r)
			}
		})
		if _, err := New(faulty, table, patient).Load(t.Context(), done); err != nil || eventual.Load() > 0 {
			t.Errorf("%d reads are not consistent, %v", eventual.Load(), err)
		}
	})
}

// If a part could not be written, the completion is not sent, whatever happened to the part. The
// attempt may complete again, and succeeds.
func TestX8_ACompletionIsNotSentBeforeItsPartsAreThere(t *testing.T) {
	client, table := freshTable(t)
	plain := New(client, table, patient)
	big := withValue([]byte(noise(4*partSize + 1)))
	for _, c := range []struct {
		name   string
		fault  fault
		reason lambdaidem.Reason
	}{
		{"throttled", throttle, lambdaidem.ReasonThrottled},
		{"refused", refuseAs("AccessDeniedException"), lambdaidem.ReasonPermission},
		{"request lost", loseRequest, lambdaidem.ReasonUnreachable},
		{"reply lost", loseReply, lambdaidem.ReasonUnreachable},
		{"500 after the write", answer500AfterWrite, lambdaidem.ReasonUnknown},
	} {
		for _, which := range []int{1, 5} {
			t.Run(fmt.Sprintf("%s, part %d", c.name, which), func(t *testing.T) {
				fail := true
				faulty, w := overSelective(client, func(r asked) fault {
					if fail && r.isPart(which) {
						return c.fault
					}
					return nil
				})
				s := New(faulty, table, quick, patient)
				held, err := plain.Acquire(t.Context(), claim)
				if err != nil {
					t.Fatal(err)
				}
				_, err = s.Complete(t.Context(), lease, big)
				wantStoreError(t, err, opComplete, c.reason, true)
				if want := fmt.Sprintf("part %d of 5 of the answer", which); !strings.Contains(err.Error(), want) {
					t.Errorf("error %q doesn't name %s", err, want)
				}
				if slices.Contains(w.sent, "UpdateItem") {
					t.Error("the completion was sent")
				}
				if got, err := plain.Get(t.Context(), claim.ID, now); err != nil || cmp.Diff(held, got) != "" {
					t.Errorf("the record changed: %+v, %v", got, err)
				}
				fail = false
				done, err := s.Complete(t.Context(), lease, big)
				if err != nil || w.sent[len(w.sent)-1] != "UpdateItem" {
					t.Fatalf("again: %v, %v", w.sent, err)
				}
				if loaded, err := plain.Load(t.Context(), done); err != nil || !bytes.Equal(loaded.Value, big.Value) {
					t.Errorf("loaded %d bytes, %v", len(loaded.Value), err)
				}
				if _, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: s.key(claim.ID)}); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// When Complete or Load returns, none of its requests is still running.
func TestX7_NoRequestForAPartOutlivesItsCall(t *testing.T) {
	client, table := freshTable(t)
	done := completes(t, New(client, table, patient), claim, withValue([]byte(noise(8*partSize))))
	var underWay atomic.Int64
	faulty, _ := overSelective(client, func(r asked) fault {
		underWay.Add(1)
		return func(req *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
			defer underWay.Add(-1)
			if r.isPart(2) {
				return throttle(req, next)
			}
			return hang(req, next)
		}
	})
	s := New(faulty, table, patient, func(o *Options) { o.Attempts = 1 })
	_, err := s.Load(t.Context(), done)
	wantStoreError(t, err, opLoad, lambdaidem.ReasonThrottled, true)
	if n := underWay.Load(); n != 0 {
		t.Errorf("%d requests outlive Load", n)
	}
	_, err = s.Complete(t.Context(), lease, withValue([]byte(noise(8*partSize))))
	wantStoreError(t, err, opComplete, lambdaidem.ReasonThrottled, true)
	if n := underWay.Load(); n != 0 {
		t.Errorf("%d requests outlive Complete", n)
	}
}

// If an attempt dies after it has written the parts and before it completes, the parts are orphans.
// They are never replayed, they don't prevent another attempt, and they expire.
func TestR3_OrphansAreNobodysAnswerAndExpire(t *testing.T) {
	client, table := freshTable(t)
	faulty, _ := overSelective(client, func(r asked) fault {
		if r.operation == "UpdateItem" {
			return loseRequest
		}
		return nil
	})
	s, dies := New(client, table, patient), New(faulty, table, quick, patient)
	first, err := s.Acquire(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	lost := withValue([]byte(noise(3 * partSize)))
	_, err = dies.Complete(t.Context(), lease, lost)
	wantStoreError(t, err, opComplete, lambdaidem.ReasonUnreachable, false)

	p, err := s.pack(t.Context(), lease, lost)
	if err != nil {
		t.Fatal(err)
	}
	orphans := partIDs(t, lambdaidem.Record{ID: claim.ID, Result: p.result})
	var before []attributes
	for _, id := range orphans {
		item := itemOf(t, client, table, id)
		if want := number(lost.Expires.Add(lambdaidem.KeptAfterExpiry + time.Hour).Unix()); item == nil || cmp.Diff(want, item[attrExpiration], avOptions) != "" {
			t.Fatalf("the orphan %s expires at %v", id, item[attrExpiration])
		}
		before = append(before, item)
	}

	next := claimBy("token-2")
	next.Now = claim.LeaseEnd.Add(time.Second)
	next.Over = &first
	second := completes(t, s, next, lost) // the same answer, of another attempt
	if slices.Contains(partIDs(t, second), orphans[0]) {
		t.Error("two attempts share their parts")
	}
	loaded, err := s.Load(t.Context(), second)
	if err != nil || !bytes.Equal(loaded.Value, lost.Value) {
		t.Errorf("loaded %d bytes, %v", len(loaded.Value), err)
	}
	for i, id := range orphans {
		if diff := cmp.Diff(before[i], itemOf(t, client, table, id), avOptions); diff != "" {
			t.Errorf("the orphan changed:\n%s", diff)
		}
	}
}

// A part is kept for an hour longer than its record's item, or for ever if the record is.
func TestR3_PartsOutliveTheirRecord(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient)
	for name, expires := range map[string]time.Time{"a day": result.Expires, "for ever": {}} {
		t.Run(name, func(t *testing.T) {
			c, r := claim, withValue([]byte(noise(2*partSize)))
			c.ID, r.Expires = name, expires
			for _, id := range partIDs(t, completes(t, s, c, r)) {
				var want types.AttributeValue
				if !expires.IsZero() {
					want = number(expires.Add(lambdaidem.KeptAfterExpiry).Unix() + 3600)
				}
				if diff := cmp.Diff(want, itemOf(t, client, table, id)[attrExpiration], avOptions); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// No method treats a part as a record, and none overwrites a part.
func TestD4_APartIsNoRecord(t *testing.T) {
	client, table := freshTable(t, renamed)
	s := New(client, table, patient, renamed)
	done := completes(t, s, claim, withValue([]byte(noise(2*partSize))))
	if loaded, err := s.Load(t.Context(), done); err != nil || len(loaded.Value) != 2*partSize {
		t.Fatalf("loaded %d bytes, %v", len(loaded.Value), err)
	}
	id := partIDs(t, done)[0]
	read := func() attributes {
		out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: s.key(id), ConsistentRead: aws.Bool(true)})
		if err != nil {
			t.Fatal(err)
		}
		return out.Item
	}
	before := read()
	for _, at := range []time.Time{now, result.Expires.Add(100 * time.Hour)} { // live, then expired
		c, l := claim, lease
		c.ID, l.ID, c.Now, c.LeaseEnd = id, id, at, at.Add(time.Minute)
		_, err := s.Acquire(t.Context(), c)
		wantStoreError(t, err, opAcquire, lambdaidem.ReasonForeign, true)
		if !strings.Contains(err.Error(), "it is a part of an answer") {
			t.Errorf("error %q doesn't say what the item is", err)
		}
		r := result
		r.At = at
		_, err = s.Complete(t.Context(), l, r)
		wantStoreError(t, err, opComplete, lambdaidem.ReasonForeign, true)
		_, err = s.Release(t.Context(), l, at)
		wantStoreError(t, err, opRelease, lambdaidem.ReasonForeign, true)
		_, err = s.Get(t.Context(), id, at)
		wantStoreError(t, err, opGet, lambdaidem.ReasonForeign, true)
	}
	if diff := cmp.Diff(before, read(), avOptions); diff != "" {
		t.Errorf("the part changed:\n%s", diff)
	}
}

// No two parts have the same key, even if the same text results when their ids, tokens and answers
// are concatenated.
func TestD4_PartsOfDifferentAnswersHaveDifferentKeys(t *testing.T) {
	type part struct{ id, token, answer string }
	keys := map[string]string{}
	for _, p := range []part{
		{"a", "a", "plaina"}, {"a", "aplain", "a"}, {"aa", "", "plaina"}, {"", "aa", "plaina"},
		{"a#1", "a", "x"}, {"a", "#1a", "x"}, {"a#1#1", "a", "x"},
	} {
		for n := range 12 {
			id := partID(p.id, checksum(p.id, p.token, encodingPlain, []byte(p.answer)), n+1)
			if other, taken := keys[id]; taken {
				t.Errorf("part %d of %q and %s are both %q", n+1, p, other, id)
			}
			keys[id] = fmt.Sprintf("part %d of %q", n+1, p)
		}
	}
}

// An answer is compressed only if that certainly saves write units. An answer below the threshold
// can be read in the console.
func TestR3_CompressionSavesUnitsOrIsNotUsed(t *testing.T) {
	s := New(written.client(), "test")
	rapid.Check(t, func(t *rapid.T) {
		random := rapid.IntRange(0, 24<<10).Draw(t, "bytes of noise")
		size := random + rapid.IntRange(0, 5<<10).Draw(t, "bytes of text")
		value := []byte(noise(random) + strings.Repeat("x", size-random))
		c := claim
		c.Scope = strings.Repeat("s", rapid.IntRange(0, 3000).Draw(t, "scope"))
		p, err := s.pack(t.Context(), lease, withValue(value))
		if err != nil {
			t.Fatal(err)
		}
		units := func(r lambdaidem.Result) int { // for the record, and for the parts if there are any
			itm := claimed(c)
			itm.finish(r)
			attrs := s.layout.attributes(itm)
			return writeUnits(sizeOf(attrs)) + writeUnits(len(p.partData)+500)
		}
		a, apart := p.result.Apart.(*apart)
		switch {
		case apart && a.Encoding == encodingGzip && p.partData == nil:
			if stored, plain := units(p.result), units(withValue(value)); stored >= plain {
				t.Errorf("compressed it costs %d units, and %d else", stored, plain)
			}
		case size < 2<<10 && apart:
			t.Error("a small answer is compressed")
		case !apart && size-random >= 4<<10:
			t.Errorf("%d bytes that would compress well are kept as they are", size-random)
		}
	})
}

// The smallest saving for which an answer is compressed is one write unit.
func TestR3_TheSmallestSavingIsAUnit(t *testing.T) {
	s := New(written.client(), "test")
	size := func(r lambdaidem.Result) int {
		itm := claimed(claim)
		itm.finish(r)
		attrs := s.layout.attributes(itm)
		return sizeOf(attrs)
	}
	for random := 2000; random < 2003; random++ {
		for text := 1024; ; text++ {
			whole := withValue([]byte(noise(random) + strings.Repeat("x", text)))
			p, err := s.pack(t.Context(), lease, whole)
			if err != nil {
				t.Fatal(err)
			}
			if p.result.Apart == nil {
				continue
			}
			saved := size(whole) - size(p.result)
			if saved < bytesPerWrite || saved > bytesPerWrite+50 {
				t.Fatalf("%d bytes of noise and %d of text are compressed, which saves %d bytes of the item", random, text, saved)
			}
			break
		}
	}
}

// The store decides how an answer is stored. It ignores Result.Apart of another record.
func TestG3_AnAnswerIsTheOneThatIsCompleted(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient)
	large := completes(t, s, claim, withValue([]byte(noise(2*partSize))))
	other, mixed := claim, result
	other.ID, mixed.Apart = "other", large.Result.Apart
	done := completes(t, s, other, mixed)
	if !bytes.Equal(done.Result.Value, result.Value) || done.Result.Apart != nil {
		t.Errorf("stored is %+v", done.Result)
	}
}

// Options set the size from which answers are compressed, and the size from which parts are used.
func TestR3_TheThresholdsAreOptions(t *testing.T) {
	text, random := bytes.Repeat([]byte("payment "), 5<<10), []byte(noise(40<<10)) // 40 KB each
	for name, c := range map[string]struct {
		option func(*Options)
		value  []byte
		want   string
	}{
		"by default, text":  {func(*Options) {}, text, "gzip, 0 parts"},
		"by default, noise": {func(*Options) {}, random, "plain, 1 parts"},
		"no compression":    {func(o *Options) { o.CompressFrom = math.MaxInt }, text, "plain, 1 parts"},
		"as late as it may": {func(o *Options) { o.CompressFrom, o.MaxInline = math.MaxInt, 384<<10 }, text, "as it is"},
		"at the bound":      {func(o *Options) { o.MaxInline = 40 << 10 }, random, "as it is"},
		"above the bound":   {func(o *Options) { o.MaxInline = 40<<10 - 1 }, random, "plain, 1 parts"},
		"parts for all":     {func(o *Options) { o.MaxInline = 1 }, text, "gzip, 1 parts"},
		"at most":           {func(o *Options) { o.MaxAnswer = 40 << 10 }, random, "plain, 1 parts"},
		"too large":         {func(o *Options) { o.MaxAnswer = 40<<10 - 1 }, text, "too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := New(written.client(), "test", c.option).pack(t.Context(), lease, withValue(c.value))
			got := "as it is"
			se := (*lambdaidem.StoreError)(nil)
			if a, ok := p.result.Apart.(*apart); ok {
				got = fmt.Sprintf("%s, %d parts", a.Encoding, a.Parts.Count)
			} else if errors.As(err, &se) {
				got = string(se.Reason)
			}
			if got != c.want {
				t.Errorf("it is stored %s; want %s", got, c.want)
			}
		})
	}
}

// A damaged length does not make the store allocate that much memory.
func TestR3_ADamagedLengthIsNotAllocated(t *testing.T) {
	stored := [][]byte{compressed(bytes.Repeat([]byte("x"), 1<<20))}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := decompressed(stored, maxAnswerBound)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > 1<<20 {
		t.Errorf("it took %d bytes: %v", took, err)
	}
}

// No damaged bytes make decompression panic, allocate too much memory, or return a wrong answer.
func FuzzOpen(f *testing.F) {
	f.Add(compressed([]byte("answer")), 6)
	f.Add(compressed(bytes.Repeat([]byte("x"), 1<<20)), 10)
	f.Add(append(compressed([]byte("a")), compressed([]byte("b"))...), 2)
	f.Add([]byte{0x1f, 0x8b}, 1<<20)
	f.Fuzz(func(t *testing.T, data []byte, length int) {
		if length < 0 || length > maxAnswerBound {
			return
		}
		answer, err := decompressed([][]byte{data[:len(data)/2], data[len(data)/2:]}, length)
		if err == nil && len(answer) != length {
			t.Errorf("it has %d bytes", len(answer))
		}
		a := &apart{Encoding: encodingGzip, Parts: parts{Length: length, Checksum: make([]byte, 32)}}
		if _, err := (&Store{}).open(t.Context(), lambdaidem.Record{ID: "id", Token: "t"}, a, [][]byte{data}); err == nil {
			t.Error("it passes for an answer")
		}
	})
}
