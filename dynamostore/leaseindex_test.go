package dynamostore

import (
	"crypto/rand"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/storetest"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// indexed sets a lease index with three shards.
func indexed(o *Options) { o.LeaseIndex, o.LeaseShards = "leases", 3 }

func TestConformanceWithLeaseIndex(t *testing.T) {
	both := func(o *Options) { renamed(o); indexed(o) }
	client, table := freshTable(t, both)
	s := New(client, table, patient, both)
	t.Run("suite", func(t *testing.T) {
		storetest.Test(t, func(*testing.T) lambdaidem.Store { return s })
	})
	if err := s.CheckTable(t.Context()); err != nil {
		t.Error(err)
	}
}

// shardIn returns the record's shard in the table, or "" if it has none.
func shardIn(t *testing.T, client *dynamodb.Client, table, id string) string {
	t.Helper()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: attributes{attrID: str(id)}, ConsistentRead: aws.Bool(true)})
	if err != nil || out.Item == nil {
		t.Fatalf("there is %v, %v; want the record", out, err)
	}
	var shard text
	if v := out.Item[attrLeaseShard]; v != nil && takeValue(&shard, v) != "" {
		t.Fatalf("the shard is %v", v)
	}
	return string(shard)
}

// A record has a shard exactly while it is in progress, whoever wrote it.
func TestO2_ARecordIsInTheIndexExactlyWhileItIsInProgress(t *testing.T) {
	client, table := freshTable(t, indexed)
	s := New(client, table, patient, indexed)
	commit := func(claim *lambdaidem.Claim, l lambdaidem.Lease) error {
		tx := s.Begin(rand.Reader).(*transaction)
		tx.enlisted.Put("effect", types.Put{TableName: aws.String(table), Item: attributes{attrID: str("effect of " + l.ID + l.Token)}})
		tx.Seal(lambdaidem.OutcomeSucceeded)
		_, err := tx.Commit(t.Context(), &lambdaidem.Completion{Lease: l, Result: result, Claim: claim})
		return err
	}
	take := func(c lambdaidem.Claim) error {
		rec, err := s.Acquire(t.Context(), c)
		if err == nil && rec.Token != c.Token {
			err = fmt.Errorf("%s holds it", rec.Token)
		}
		return err
	}
	over := func(c lambdaidem.Claim, current lambdaidem.Record, err error) error {
		c.Token, c.Over = "token-2", &current
		if err != nil {
			return err
		}
		return take(c)
	}
	for name, c := range map[string]struct {
		then func(c lambdaidem.Claim, l lambdaidem.Lease) error // runs after the lock
		in   bool
	}{
		"locked": {func(lambdaidem.Claim, lambdaidem.Lease) error { return nil }, true},
		"with steps": {func(_ lambdaidem.Claim, l lambdaidem.Lease) error {
			_, err := s.SaveSteps(t.Context(), l, twoSteps, now)
			return err
		}, true},
		"completed": {func(_ lambdaidem.Claim, l lambdaidem.Lease) error {
			_, err := s.Complete(t.Context(), l, result)
			return err
		}, false},
		"completed after steps": {func(_ lambdaidem.Claim, l lambdaidem.Lease) error {
			if _, err := s.SaveSteps(t.Context(), l, twoSteps, now); err != nil {
				return err
			}
			_, err := s.Complete(t.Context(), l, result)
			return err
		}, false},
		"completed with enlisted writes": {func(_ lambdaidem.Claim, l lambdaidem.Lease) error { return commit(nil, l) }, false},
		"claimed over its own lock":      {func(c lambdaidem.Claim, l lambdaidem.Lease) error { return commit(&c, l) }, false},
		"claimed over a dead lease": {func(c lambdaidem.Claim, l lambdaidem.Lease) error {
			current, err := s.Get(t.Context(), c.ID, now)
			c.Token, c.Over = "token-2", &current
			l.Token = c.Token
			if err != nil {
				return err
			}
			return commit(&c, l)
		}, false},
		"released": {func(_ lambdaidem.Claim, l lambdaidem.Lease) error {
			_, err := s.Release(t.Context(), l, now)
			return err
		}, false},
		"taken over": {func(c lambdaidem.Claim, _ lambdaidem.Lease) error {
			current, err := s.Get(t.Context(), c.ID, now)
			return over(c, current, err)
		}, true},
		"released and taken over": {func(c lambdaidem.Claim, l lambdaidem.Lease) error {
			current, err := s.Release(t.Context(), l, now)
			return over(c, current, err)
		}, true},
		"released, taken over and completed": {func(c lambdaidem.Claim, l lambdaidem.Lease) error {
			current, err := s.Release(t.Context(), l, now)
			if err := over(c, current, err); err != nil {
				return err
			}
			l.Token = "token-2"
			_, err = s.Complete(t.Context(), l, result)
			return err
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			own, l := claim, lease
			own.ID = "lambdaidem#" + name
			l.ID = own.ID
			if err := take(own); err != nil {
				t.Fatal(err)
			}
			want := shardIn(t, client, table, own.ID)
			if want == "" {
				t.Fatal("the lock has no shard")
			}
			if err := c.then(own, l); err != nil {
				t.Fatal(err)
			}
			if !c.in {
				want = ""
			}
			if got := shardIn(t, client, table, own.ID); got != want {
				t.Errorf("the shard is %q; want %q", got, want)
			}
		})
	}
	t.Run("optimistic", func(t *testing.T) {
		own, l := claim, lease
		own.ID, l.ID = "lambdaidem#optimistic", "lambdaidem#optimistic"
		if err := commit(&own, l); err != nil {
			t.Fatal(err)
		}
		if got := shardIn(t, client, table, own.ID); got != "" {
			t.Errorf("the shard is %q", got)
		}
	})
}

// Whatever ends an attempt removes its record from the index, whoever wrote the item.
func TestO2_AnItemThatIsNotInProgressHasNoShard(t *testing.T) {
	for name, end := range map[string]func(*item){
		"completed": func(itm *item) { itm.finish(result) },
		"released":  func(itm *item) { itm.release(lease.Expires, lease.LastFailure, lease.Bound) },
	} {
		itm := claimed(claim)
		itm.LeaseShard = "7"
		if end(itm); itm.LeaseShard != "" {
			t.Errorf("%s it has the shard %s", name, itm.LeaseShard)
		}
	}
}

// The shard depends only on the id. It is the same in every process, and ids are spread evenly.
func TestO2_TheShardIsAFunctionOfTheID(t *testing.T) {
	o := resolved("New", "test", []func(*Options){func(o *Options) { o.LeaseIndex = "leases" }})
	counts := map[string]int{}
	const ids = 64_000
	for i := range ids {
		id := fmt.Sprint("lambdaidem#", i)
		h := fnv.New32a()
		_, _ = h.Write([]byte(id))
		got := o.leaseShard(id)
		if want := fmt.Sprint(h.Sum32() % 64); got != want {
			t.Fatalf("the shard of %s is %s; want %s", id, got, want)
		}
		counts[got]++
	}
	for shard, n := range counts {
		if n < ids/64*8/10 || n > ids/64*12/10 {
			t.Errorf("shard %s has %d of %d ids", shard, n, ids)
		}
	}
	if len(counts) != 64 {
		t.Errorf("%d shards are in use; want the default of 64", len(counts))
	}
	o.LeaseIndex = ""
	if got := o.leaseShard("lambdaidem#1"); got != "" {
		t.Errorf("without an index the shard is %q", got)
	}
}

// Without the index, the store makes no more allocations than before the index existed.
func TestO2_TheIndexOffAllocatesNothing(t *testing.T) {
	least := func(want float64, do func()) {
		t.Helper()
		if got := testing.AllocsPerRun(200, do); got > want {
			t.Errorf("%v allocations; before there was an index %v", got, want)
		}
	}
	itm, done := claimed(claim), `{"Item":`+string(standardLayout.appendItem(nil, completedItem()))+`}`
	room := make([]byte, 0, 4<<10)
	least(0, func() { standardLayout.appendItem(room, itm) })
	for _, set := range []updates{takeover, completion, release, saving} {
		least(0, func() { standardLayout.appendValues(standardLayout.appendExpression(room, set, itm), set, itm) })
	}
	least(7, func() {
		_, _, _ = standardLayout.read(func(take taker) (bool, bool) { return lowlevel.Item(done, "Item", take) })
	})
}

// CreateTable creates the index of the options, and CheckTable finds no problem with it.
func TestO2_CreateTableMakesTheIndex(t *testing.T) {
	client, table := freshTable(t, indexed)
	if err := CreateTable(t.Context(), client, table, indexed); err != nil {
		t.Errorf("the second time: %v", err)
	}
	s := New(client, table, patient, indexed)
	if err := s.CheckTable(t.Context()); err != nil {
		t.Error(err)
	}
	out, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil || len(out.Table.GlobalSecondaryIndexes) != 1 || out.Table.GlobalSecondaryIndexes[0].Projection.ProjectionType != types.ProjectionTypeKeysOnly {
		t.Errorf("the table is %+v, %v; want one index, of keys", out.Table, err)
	}
	_, plain := freshTable(t)
	if got := codes(t, CreateTable(t.Context(), client, plain, indexed)); !slices.Equal(got, []TableCode{NoIndex}) {
		t.Errorf("of a table without the index it says %v", got)
	}
	if got := codes(t, New(client, plain, patient, indexed).CheckTable(t.Context())); !slices.Equal(got, []TableCode{NoIndex}) {
		t.Errorf("CheckTable says %v of it", got)
	}
}

// CheckTable reports what is wrong with an index.
func TestO2_CheckTableFindsMisSetIndexes(t *testing.T) {
	for name, c := range map[string]struct {
		key, attrs         string // alternately the name and the type of each attribute
		index              string
		status, projection string
		denied             string
		found              []TableCode
		warning            bool
		says               string
	}{
		"as it should be":     {found: nil},
		"being changed":       {status: "UPDATING", found: nil},
		"being made":          {status: "CREATING", found: []TableCode{IndexNotActive}, says: "CREATING"},
		"of another name":     {index: "other", found: []TableCode{NoIndex}, says: `no index "leases"`},
		"another sort key":    {key: "lease_shard started_at", attrs: "SN", found: []TableCode{WrongIndex}, says: "RANGE started_at (N)"},
		"no sort key":         {key: "lease_shard", attrs: "S", found: []TableCode{WrongIndex}, says: "HASH lease_shard (S);"},
		"the other way round": {key: "in_progress_expiration lease_shard", attrs: "NS", found: []TableCode{WrongIndex}, says: "HASH in_progress_expiration (N)"},
		"another key":         {key: "scope in_progress_expiration", attrs: "SN", found: []TableCode{WrongIndex}, says: "HASH scope (S)"},
		"a shard of numbers":  {attrs: "NN", found: []TableCode{WrongIndex}, says: "HASH lease_shard (N)"},
		"a time of strings":   {attrs: "SS", found: []TableCode{WrongIndex}, says: "RANGE in_progress_expiration (S)"},
		"wide":                {projection: "ALL", found: []TableCode{WideIndex}, warning: true, says: "KEYS_ONLY is enough"},
		"not to be asked":     {denied: "Query", found: []TableCode{NoPermission}, warning: true, says: `dynamodb:Query on table "records/index/leases"`},
		"wide and being made": {projection: "ALL", status: "CREATING", found: []TableCode{IndexNotActive, WideIndex}},
	} {
		t.Run(name, func(t *testing.T) {
			d := described{denied: c.denied}
			or := func(s, standard string) string {
				if s == "" {
					return standard
				}
				return s
			}
			key, kinds := strings.Fields(or(c.key, "lease_shard in_progress_expiration")), or(c.attrs, "SN")
			schema, defined := []string{}, []string{`{"AttributeName":"id","AttributeType":"S"}`}
			for i, name := range key {
				schema = append(schema, `{"AttributeName":"`+name+`","KeyType":"`+[]string{"HASH", "RANGE"}[i]+`"}`)
				defined = append(defined, `{"AttributeName":"`+name+`","AttributeType":"`+kinds[i:i+1]+`"}`)
			}
			description := `{"Table":{"TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[` + strings.Join(defined, ",") + `],` +
				`"GlobalSecondaryIndexes":[{"IndexName":"more"},{"IndexName":"` + or(c.index, "leases") + `","IndexStatus":"` + or(c.status, "ACTIVE") + `","Projection":{"ProjectionType":"` + or(c.projection, "KEYS_ONLY") + `"},` +
				`"KeySchema":[` + strings.Join(schema, ",") + `]}]}}`
			asked := ""
			client, _ := inMemory()
			client = dynamodb.New(client.Options(), func(o *dynamodb.Options) {
				o.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
					_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
					if action == "Query" {
						asked = bodyOf(r)
					}
					if action == "DescribeTable" {
						return answer(200, description), nil
					}
					return d.answer(action), nil
				})
			})
			err := New(client, "records", indexed).CheckTable(t.Context())
			if got := codes(t, err); !slices.Equal(got, c.found) {
				t.Fatalf("found %v; want %v\n%v", got, c.found, err)
			}
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q does not say %q", err, c.says)
			}
			if c.warning != (err != nil && err.(TableProblems)[0].Warning) { //nolint:errorlint // its own type
				t.Errorf("a warning: %v; want %v", !c.warning, c.warning)
			}
			if want := len(c.found) == 0 || c.warning; strings.Contains(asked, `"IndexName":"leases"`) != want {
				t.Errorf("asked for Query: %q; want %v", asked, want)
			}
		})
	}
}

// Without the option, CheckTable ignores all indexes.
func TestO2_CheckTableLooksAtNoIndexUnasked(t *testing.T) {
	client, table := freshTable(t)
	faulty, wire := over(client)
	if err := New(faulty, table, patient).CheckTable(t.Context()); err != nil || wire.trips() != 5 {
		t.Errorf("%v after %d round trips; want 5, as documented", err, wire.trips())
	}
	client, table = freshTable(t, indexed)
	faulty, wire = over(client)
	if err := New(faulty, table, patient, indexed).CheckTable(t.Context()); err != nil || wire.trips() != 7 {
		t.Errorf("%v after %d round trips; want 7, as documented", err, wire.trips())
	}
}

// The index can be added while functions are running. Records that are locked after the option is
// set are found once the index exists, in whichever order the two happen. Records that were locked
// before the option is set are not found.
func TestO2_TheIndexCanBeAddedToATableInUse(t *testing.T) {
	// Use a separate server: while DynamoDB Local creates an index and is busy with other tests, it
	// may refuse writes with 500 for minutes.
	server, err := ddblocal.Start(t.Context(), func(o *ddblocal.Options) { o.Own = true })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.CloseIdleConnections()
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, table := server.Client(), "test"
	if err := CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	old, told := New(client, table, patient), New(client, table, patient, indexed)
	lock := func(s *Store, name string) {
		t.Helper()
		own := claim
		own.ID = "lambdaidem#" + name
		_, err := s.Acquire(t.Context(), own)
		// DynamoDB Local responds to writes with 500 while it creates an index.
		for deadline := time.Now().Add(2 * time.Minute); err != nil && time.Now().Before(deadline); {
			_, err = s.Acquire(t.Context(), own)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	lock(old, "before all")
	lock(told, "before the index")
	asked := resolved("New", table, []func(*Options){indexed})
	in := &dynamodb.CreateTableInput{AttributeDefinitions: typed(attrID, "S")}
	asked.addLeaseIndex(in)
	index := in.GlobalSecondaryIndexes[0]
	if _, err := client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName: &table, AttributeDefinitions: in.AttributeDefinitions,
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
			IndexName: index.IndexName, KeySchema: index.KeySchema, Projection: index.Projection}}},
	}); err != nil {
		t.Fatal(err)
	}
	lock(told, "while it is made")
	for deadline := time.Now().Add(2 * time.Minute); told.CheckTable(t.Context()) != nil; {
		if time.Now().After(deadline) {
			t.Fatal(told.CheckTable(t.Context()))
		}
	}
	lock(old, "by a version without")
	lock(told, "after")
	if got, want := deadIDs(t, told, now.Add(time.Hour)), []string{"after", "before the index", "while it is made"}; !slices.Equal(got, want) {
		t.Errorf("found %q; want %q", got, want)
	}
}

// deadIDs returns the ids of the dead leases that the store finds, without their prefix, sorted.
func deadIDs(t *testing.T, s *Store, before time.Time) []string {
	t.Helper()
	ids := []string{}
	for rec, err := range s.DeadLeases(t.Context(), func(o *DeadLeasesOptions) { o.Before = before }) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, strings.TrimPrefix(rec.ID, "lambdaidem#"))
	}
	slices.Sort(ids)
	return ids
}
