package dynamostore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// DeadLeases returns exactly the records that are in progress and whose lease has ended, as they
// are in the table. Within each shard, it begins with the lease that ended first.
func TestO2_DeadLeasesAreFound(t *testing.T) {
	both := func(o *Options) { renamed(o); indexed(o) }
	for name, opt := range map[string]func(*Options){"standard": indexed, "renamed": both} {
		t.Run(name, func(t *testing.T) {
			client, table := freshTable(t, opt)
			s := New(client, table, patient, opt)
			want := map[string]lambdaidem.Record{}
			for i := range 40 {
				c := claim
				c.ID, c.Token = fmt.Sprint("lambdaidem#", i), fmt.Sprint("token-", i)
				c.LeaseEnd = now.Add(time.Duration((i*7)%40) * time.Minute)
				if i%10 == 9 {
					c.Expires = time.Time{} // as under policy Hold
				} else {
					c.Expires = now.Add(24 * time.Hour)
				}
				l := lambdaidem.Lease{ID: c.ID, Token: c.Token, Expires: lease.Expires}
				rec, err := s.Acquire(t.Context(), c)
				switch {
				case err != nil:
				case i%10 == 1:
					_, err = s.Complete(t.Context(), l, result)
				case i%10 == 2:
					_, err = s.Release(t.Context(), l, now)
				case i%10 == 3:
					rec, err = s.SaveSteps(t.Context(), l, twoSteps, now)
				case i%10 == 4:
					c.Over, c.Token, c.LeaseEnd = &rec, "token-2", c.LeaseEnd.Add(time.Second)
					rec, err = s.Acquire(t.Context(), c)
				}
				if err != nil {
					t.Fatal(err)
				}
				if rec.State == lambdaidem.InProgress && i%10 != 1 && i%10 != 2 && !c.LeaseEnd.After(now.Add(20*time.Minute)) {
					want[c.ID] = rec
				}
			}
			for _, size := range []int{0, 1, 2} {
				got, order := map[string]lambdaidem.Record{}, map[string]time.Time{}
				for rec, err := range s.DeadLeases(t.Context(), func(o *DeadLeasesOptions) { o.Before, o.PageSize = now.Add(20*time.Minute), size }) {
					if err != nil {
						t.Fatal(err)
					}
					if _, twice := got[rec.ID]; twice {
						t.Errorf("%s came twice", rec.ID)
					}
					got[rec.ID] = rec
					shard := s.opts.leaseShard(rec.ID)
					if rec.LeaseEnd.Before(order[shard]) {
						t.Errorf("%s comes after one whose lease ended later", rec.ID)
					}
					order[shard] = rec.LeaseEnd
				}
				if diff := cmp.Diff(want, got); diff != "" || len(order) != 3 {
					t.Errorf("pages of %d, from %d shards: want - got +:\n%s", size, len(order), diff)
				}
			}
		})
	}
}

// index is a fake of DynamoDB, whose index and table may disagree. Queries of the first shard
// return pages of ids, and GetItem returns the item of an id.
type index struct {
	pages   [][]string
	items   map[string]string // by id: the JSON of an item, or "denied" to refuse the read; an id that is missing has no item
	failing int               // n > 0: the nth Query is refused; n < 0: all Queries from the -nth on are lost; 0: no Query fails
	asked   []string          // "Query shard before" and "GetItem id", in order
	at      []time.Time
	limits  []int
}

func (x *index) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var in struct {
		Key                       map[string]struct{ S string }
		ExpressionAttributeValues map[string]struct{ S, N string }
		ExclusiveStartKey         map[string]struct{ S string }
		ConsistentRead            bool
		ScanIndexForward          *bool
		Limit                     int
		IndexName                 string
	}
	if err := json.Unmarshal([]byte(bodyOf(r)), &in); err != nil {
		return nil, err
	}
	x.at = append(x.at, time.Now())
	if operation == "GetItem" {
		id := in.Key[attrID].S
		x.asked = append(x.asked, "GetItem "+id)
		switch item := x.items[id]; {
		case !in.ConsistentRead:
			return nil, errors.New("a read that proves nothing")
		case item == "denied":
			return described{denied: operation}.answer(operation), nil
		case item == "":
			return answer(200, `{}`), nil
		default:
			return answer(200, `{"Item":`+item+`}`), nil
		}
	}
	shard := in.ExpressionAttributeValues[":shard"].S
	x.asked, x.limits = append(x.asked, "Query "+shard+" "+in.ExpressionAttributeValues[":before"].N), append(x.limits, in.Limit)
	switch n := len(x.limits); {
	case n == x.failing:
		return described{denied: operation}.answer(operation), nil
	case x.failing < 0 && n >= -x.failing:
		return loseRequest(r, nil)
	}
	if shard != "0" || in.IndexName != "leases" || in.ScanIndexForward != nil && !*in.ScanIndexForward {
		return answer(200, `{"Items":[]}`), nil
	}
	page := 0
	if from := in.ExclusiveStartKey["id"].S; from != "" {
		page = 1 + slices.IndexFunc(x.pages, func(ids []string) bool { return slices.Contains(ids, from) })
	}
	entries, last := []string{}, ""
	for _, id := range x.pages[page] {
		last = `{"id":{"S":"` + id + `"},"lease_shard":{"S":"0"},"in_progress_expiration":{"N":"1"}}`
		entries = append(entries, last)
	}
	more := ""
	if page+1 < len(x.pages) {
		more = `,"LastEvaluatedKey":` + last
	}
	return answer(200, `{"Items":[`+strings.Join(entries, ",")+`]`+more+`}`), nil
}

func (x *index) store() *Store {
	client, _ := inMemory()
	return New(dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.HTTPClient = x }), "records", quick, indexed)
}

// deadJSON returns the JSON of an item whose lease ended at end. The function change may change the
// item before.
func deadJSON(id string, end time.Time, change func(*item)) string {
	c := claim
	c.ID, c.LeaseEnd, c.Expires = id, end, end.Add(24*time.Hour).Truncate(time.Second)
	itm := claimed(c)
	change(itm)
	return itemJSON(itm)
}

// The index lags behind the table. DeadLeases returns only records whose lease is dead in the
// table.
func TestO2_AnEntryThatLagsIsDiscarded(t *testing.T) {
	before := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	as := func(end time.Time, change func(*item)) string { return deadJSON("", end, change) }
	x := &index{items: map[string]string{}}
	for id, item := range map[string]string{
		"dead":       as(before, func(*item) {}),
		"gone":       "",
		"completed":  as(before, func(itm *item) { itm.finish(result) }),
		"released":   as(before, func(itm *item) { itm.release(time.Now().Add(time.Hour), "", "") }),
		"taken over": as(before.Add(time.Millisecond), func(*item) {}),
		"expired":    as(before, func(itm *item) { itm.Expiration = deletionOf(time.Now().Add(-time.Second)) }),
		"held":       as(before, func(itm *item) { itm.Expiration = integer{} }),
	} {
		x.pages = append(x.pages, []string{id})
		if item != "" {
			x.items[id] = strings.Replace(item, `{`, `{"id":{"S":"`+id+`"},`, 1)
		}
	}
	if got, want := deadIDs(t, x.store(), before), []string{"dead", "held"}; !slices.Equal(got, want) {
		t.Errorf("found %q; want %q", got, want)
	}
}

// A record that can't be read does not end the iteration. Any other error does.
func TestO2_ErrorsOfALook(t *testing.T) {
	end := time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		second  string // the item in the middle of three
		failing int
		want    []string // the ids; for an error, the id and the reason
	}{
		"none":                       {deadJSON("b", end, func(*item) {}), 0, []string{"a", "b", "c"}},
		"an item that can't be read": {`{"id":{"S":"b"},"lease_shard":{"S":"0"}}`, 0, []string{"a", "b foreign", "c"}},
		"a read that is denied":      {"denied", 0, []string{"a", " no_permission"}},
		"a query that is denied":     {deadJSON("b", end, func(*item) {}), 1, []string{" no_permission"}},
		"a later one":                {deadJSON("b", end, func(*item) {}), 2, []string{"a", "b", " no_permission"}},
		"a later one that is lost":   {deadJSON("b", end, func(*item) {}), -2, []string{"a", "b", " unreachable"}},
		"of another shard":           {deadJSON("b", end, func(*item) {}), 3, []string{"a", "b", "c", " no_permission"}},
	} {
		t.Run(name, func(t *testing.T) {
			x := &index{failing: c.failing, pages: [][]string{{"a", "b"}, {"c"}}, items: map[string]string{
				"a": deadJSON("a", end, func(*item) {}), "b": c.second, "c": deadJSON("c", end, func(*item) {})}}
			var got []string
			for rec, err := range x.store().DeadLeases(t.Context()) {
				said := rec.ID
				var failed *lambdaidem.StoreError
				switch {
				case errors.As(err, &failed) && !failed.NotApplied:
					t.Errorf("a read may have been applied: %v", err)
				case failed != nil:
					said += " " + string(failed.Reason)
				case err != nil || rec.State != lambdaidem.InProgress:
					t.Errorf("%+v, %v", rec, err)
				}
				got = append(got, said)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q; want %q", got, c.want)
			}
		})
	}
}

// If the caller leaves the loop, DeadLeases sends no more requests. Each loop begins with a new
// Query.
func TestO2_ALookEndsWithItsReader(t *testing.T) {
	end := time.Now().Add(-time.Hour)
	for _, bad := range []bool{false, true} {
		x := &index{pages: [][]string{{"a", "b"}, {"c"}}, items: map[string]string{"a": deadJSON("a", end, func(itm *item) {
			if bad {
				itm.Attempt.n = 0
			}
		})}}
		all := x.store().DeadLeases(t.Context())
		for look := 1; look <= 2; look++ {
			for rec, err := range all {
				if rec.ID != "a" || (err != nil) != bad {
					t.Errorf("%+v, %v", rec, err)
				}
				break
			}
			if len(x.asked) != 2*look {
				t.Errorf("asked for %q", x.asked)
			}
		}
	}
}

// By default, DeadLeases returns leases that ended at least deadMargin before the iteration began,
// and one Query returns at most 100 entries.
func TestO2_DefaultsOfALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &index{pages: [][]string{{}}}
		all := x.store().DeadLeases(t.Context())
		time.Sleep(time.Minute)
		began := time.Now()
		for rec, err := range all {
			t.Error(rec, err)
		}
		var want []string
		for shard := range 3 {
			want = append(want, fmt.Sprint("Query ", shard, " ", began.Add(-2*time.Second).UnixMilli()))
		}
		if !slices.Equal(x.asked, want) || !slices.Equal(x.limits, []int{100, 100, 100}) {
			t.Errorf("asked for %q, %d at a time; want %q", x.asked, x.limits, want)
		}
	})
}

// The rate limits all requests together. If the context ends while a request waits, the iteration
// ends.
func TestO2_TheRateOfALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := time.Now().Add(-time.Hour)
		x := &index{pages: [][]string{{"a", "b"}, {"a"}}, items: map[string]string{"a": deadJSON("a", end, func(*item) {}), "b": deadJSON("b", end, func(*item) {})}}
		began, found := time.Now(), 0
		for _, err := range x.store().DeadLeases(t.Context(), func(o *DeadLeasesOptions) { o.Rate = 4 }) {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond) // the time between two requests includes the caller's own time
			found++
		}
		for i, at := range x.at {
			if want := began.Add(time.Duration(i) * 250 * time.Millisecond); !at.Equal(want) {
				t.Errorf("request %d went after %v; want %v", i, at.Sub(began), want.Sub(began))
			}
		}
		if found != 3 || len(x.at) != 7 {
			t.Errorf("%d found by %q", found, x.asked)
		}
		for _, enough := range []time.Duration{100 * time.Millisecond, 300 * time.Millisecond} { // before a read, before the next query
			x := &index{pages: [][]string{{"a"}, {"a"}}, items: x.items}
			ctx, cancel := context.WithTimeout(t.Context(), enough)
			var failed error
			began := time.Now()
			for _, err := range x.store().DeadLeases(ctx, func(o *DeadLeasesOptions) { o.Rate = 4 }) {
				failed = err
			}
			if !errors.Is(failed, context.DeadlineExceeded) || len(x.at) != 1+int(enough/(250*time.Millisecond)) {
				t.Errorf("it ended with %v after %q", failed, x.asked)
			}
			if took := time.Since(began); took != enough {
				t.Errorf("it ended after %v, and its context after %v", took, enough)
			}
			wantStoreError(t, failed, opDeadLeases, lambdaidem.ReasonTimeout, true)
			cancel()
		}
	})
}

func TestO2_WithoutAnIndexALookIsRefused(t *testing.T) {
	n := 0
	for rec, err := range New(unsendable(t), "records").DeadLeases(t.Context()) {
		n++
		wantStoreError(t, err, opDeadLeases, lambdaidem.ReasonInvalid, true)
		if !strings.Contains(err.Error(), "Options.LeaseIndex") || rec.ID != "" {
			t.Errorf("%v does not name the option", err)
		}
	}
	if n != 1 {
		t.Errorf("%d steps", n)
	}
}

// unsendable is a client that fails the test if something is sent.
func unsendable(t *testing.T) *dynamodb.Client {
	t.Helper()
	client, _ := inMemory(func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
		t.Error("a request was sent")
		return answer(200, `{}`), nil
	})
	return client
}

func TestO2_OptionsOfALookAreChecked(t *testing.T) {
	for field, set := range map[string]func(*DeadLeasesOptions){
		"PageSize is -1;":   func(o *DeadLeasesOptions) { o.PageSize = -1 },
		"PageSize is 1001;": func(o *DeadLeasesOptions) { o.PageSize = 1001 },
		"Rate is -1;":       func(o *DeadLeasesOptions) { o.Rate = -1 },
		"Rate is 0.0009;":   func(o *DeadLeasesOptions) { o.Rate = 0.0009 },
		"Rate is NaN;":      func(o *DeadLeasesOptions) { o.Rate = math.NaN() },
	} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, "DeadLeasesOptions."+field) {
					t.Errorf("panicked with %q; want %q", said, field)
				}
			}()
			New(unsendable(t), "records", indexed).DeadLeases(t.Context(), set)
		}()
	}
	New(unsendable(t), "records", indexed).DeadLeases(t.Context(), func(o *DeadLeasesOptions) { o.PageSize, o.Rate = 1000, leastRate })
}
