package simulator

import (
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// This file simulates a global table (AWS: "How DynamoDB global tables work"). With eventual
// consistency each Region has a copy of the table. It evaluates conditions on that copy alone, and
// sends its writes to the other Regions, one item at a time. With strong consistency all Regions
// see one table. In the table that handlers write to, each Region has its own accounts, and the
// payments of all Regions.

// regions has a plan's parameters for a global table. The zero value means that there is only one
// Region.
type regions struct {
	mode     memdynamo.Consistency
	anywhere bool // each request goes to a random Region; otherwise all requests of a key go to the same one
	lag      int  // the longest time that a write takes to another Region, in milliseconds
	failover failover

	// foreignTTL lets TTL delete an item that is expired in a Region although another Region may
	// have written it since. AWS doesn't say that this can't happen.
	foreignTTL bool

	// Mistakes.
	unordered bool // an older write replaces a newer one
	locally   bool // a strongly consistent table evaluates conditions on the Region's copy
	byClient  bool // all requests of a client go to one Region, instead of all requests of a key
}

// regionNames are the names of the Regions. A strongly consistent table has three Regions. An
// eventually consistent one has as many as the simulator has copies.
var regionNames = map[memdynamo.Consistency][]string{
	memdynamo.Eventual: {"eu-central-1", "eu-west-1"},
	memdynamo.Strong:   {"eu-central-1", "eu-west-1", "eu-west-3"},
}

// The paths of worlds with several Regions.
const (
	Replicated     Path = "Regions: a write arrived"
	Outdated       Path = "Regions: a write arrived after a newer one"
	ArrivedApart   Path = "Regions: a write arrived before others of its transaction"
	TwoLocks       Path = "Regions: a lock beside another Region's"
	LockAfterDone  Path = "Regions: a lock, and another Region has the answer"
	AnswerTaken    Path = "Regions: the last writer took a stored answer away"
	AnswersDiffer  Path = "Regions: one order, two answers"
	LostToTTL      Path = "Regions: TTL of one Region took what another one had renewed"
	Unreached      Path = "Regions: a request to one that is down"
	RegionsMet     Path = "Regions: a write met another Region's"
	RegionsRefused Path = "Regions: a write was refused as if it had"
	ReadStale      Path = "Regions: an eventually consistent read"
)

// regionConflict is the message of a ReplicatedWriteConflictException.
const regionConflict = "One or more items in this request are being modified by a request in another Region"

// global has the Regions of a world.
type global struct {
	w      *world
	plan   *regions
	copies []*replica           // by Region; with strong consistency only for eventually consistent reads
	writer map[string]ownWrite  // the last write to each item; with strong consistency only
	actors []*actor             // all processes; under w.mu
	onWay  map[string]int       // the number of writes that have not arrived, by item
	apart  map[replicatedTx]int // the number of writes that have not arrived, by transaction
	doubts map[string]bool      // the records in doubt when the Region failed
}

// replica is a Region's copy of the table.
type replica struct {
	db     *memdynamo.DB
	stamps map[string]stamp // the stamp of the last write to each item
}

// stamp says when and where an item was written. Of two writes, the one with the later stamp wins.
type stamp struct {
	at     time.Time
	region int
}

func (s stamp) before(o stamp) bool {
	if c := s.at.Compare(o.at); c != 0 {
		return c < 0
	}
	return s.region < o.region
}

// replicatedTx identifies the writes of one transaction on their way from one Region to another.
type replicatedTx struct{ from, to, transaction int }

// ownWrite is a write to a strongly consistent table. Until the given time, writes of other Regions
// to the same item conflict with it.
type ownWrite struct {
	region int
	until  time.Time
}

// openRegions creates the table in all Regions, and schedules the failover.
func (w *world) openRegions() {
	p := &w.plan.regions
	g := &global{w: w, plan: p, writer: map[string]ownWrite{}, onWay: map[string]int{}, apart: map[replicatedTx]int{}, doubts: map[string]bool{}}
	w.global = g
	names := regionNames[p.mode]
	var all []*memdynamo.DB
	for range names {
		db := memdynamo.New(time.Now)
		g.copies = append(g.copies, &replica{db, map[string]stamp{}})
		all = append(all, db)
	}
	if p.mode == memdynamo.Eventual || p.locally {
		w.dbs = all
	}
	for _, r := range tableRequests {
		if r.op == "CreateTable" || p.mode == memdynamo.Eventual {
			w.mustServe(r.op, r.body)
		}
	}
	for _, db := range w.dbs {
		db.Global(table, p.mode, names...)
	}
	if !g.copied() { // one table, and for each Region what eventually consistent reads see of it
		for _, c := range g.copies {
			c.db.Serve("CreateTable", []byte(createTable(table)))
		}
	}
	if f := &p.failover; f.fails {
		w.afterFunc(f.at, g.fail)
		w.afterFunc(max(f.moved, f.back), func() {}) // the run must not end earlier
	}
}

// copied reports whether each Region evaluates conditions on its own copy.
func (g *global) copied() bool { return len(g.w.dbs) > 1 }

// home returns the Region to which all requests of a record go.
func (g *global) home(o order) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(o.record()))
	return int(h.Sum32() % uint32(len(g.copies))) //nolint:gosec // a few
}

// place decides in which Region a process runs.
func (g *global) place(a *actor) {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	g.actors = append(g.actors, a)
	switch {
	case g.plan.anywhere:
		if a.region = a.rng.IntN(len(g.copies)); g.failed(a.region) {
			a.region++ // the first one
		}
	case g.plan.byClient:
		a.region = int(a.id/1000) % len(g.copies) //nolint:gosec // a few
	default:
		a.region = g.home(a.order)
		f, now := &g.plan.failover, time.Since(g.w.born)
		switch {
		case !f.fails || a.region != 0 || now < f.at:
		case now >= f.moved:
			a.region = 1
		default:
			g.w.journal.judge.brokenLocked(a, CheckHarness, "it was sent to a Region that was left")
		}
	}
}

// receive returns the database that serves a request. If no database does, it returns the reply,
// which is an error.
func (g *global) receive(r *request, body []byte) (*memdynamo.DB, *reply) {
	from := r.actor.region
	if g.failed(from) {
		g.w.journal.path(Unreached)
		g.w.journal.add(entry{kind: kindUnreached, actor: r.actor, request: r.label})
		return nil, &reply{err: errReset}
	}
	if g.copied() {
		return g.copies[from].db, nil
	}
	if r.op == "GetItem" && !strings.Contains(string(body), `"ConsistentRead":true`) {
		g.w.journal.path(ReadStale)
		return g.copies[from].db, nil
	}
	if g.meets(r, body) {
		g.w.journal.path(RegionsMet)
		status, header, out := memdynamo.Error(memdynamo.ReplicatedWriteConflict, regionConflict)
		g.w.journal.served(r, status, out)
		return nil, &reply{status: status, header: header, body: out}
	}
	return g.w.dbs[0], nil
}

// meets reports whether a write of another Region to the same item is in progress.
func (g *global) meets(r *request, body []byte) bool {
	if r.op != "PutItem" && r.op != "UpdateItem" {
		return false
	}
	last, ok := g.writer[itemOf(body)]
	return ok && last.region != r.actor.region && time.Now().Before(last.until)
}

// wrote sends a Region's own write to the other Regions.
func (g *global) wrote(from int, write memdynamo.Write) {
	id := write.Key["id"].Text
	if write.Table == accounts && !strings.HasPrefix(id, payment) {
		return
	}
	if !g.copied() && g.w.serving != nil {
		from = g.w.serving.actor.region
		g.writer[id] = ownWrite{from, time.Now().Add(g.w.randomMillis(40))}
	}
	s := stamp{time.Now(), from}
	g.look(from, write)
	for to, c := range g.copies {
		if to == from && g.copied() {
			c.stamps[id] = s
			continue
		}
		g.onWay[id]++
		g.apart[replicatedTx{from, to, write.Transaction}]++
		g.w.afterFunc(g.w.randomMillis(g.plan.lag), func() { g.arrive(to, write, s) })
	}
}

// arrive applies another Region's write to a copy, unless the copy already has a later write (last
// writer wins). While one of the two Regions is down, the write waits.
func (g *global) arrive(to int, write memdynamo.Write, s stamp) {
	if g.failed(to) || g.failed(s.region) {
		back := g.plan.failover.back - time.Since(g.w.born)
		g.w.afterFunc(back+g.w.randomMillis(g.plan.lag), func() { g.arrive(to, write, s) })
		return
	}
	c, id := g.copies[to], write.Key["id"].Text
	g.onWay[id]--
	with := replicatedTx{s.region, to, write.Transaction}
	if g.apart[with]--; write.Transaction > 0 && g.apart[with] > 0 {
		g.w.journal.path(ArrivedApart)
	}
	if s.before(c.stamps[id]) && !g.plan.unordered {
		g.w.journal.path(Outdated)
		return
	}
	before, there := c.db.Item(write.Table, write.Key)
	by := c.stamps[id].region
	c.stamps[id] = s
	c.db.Replicate(write.Table, write.Key, write.After)
	g.w.journal.path(Replicated)
	switch lives := there && !expired(before, time.Now()); {
	case lives && write.Op == "TTL" && by != s.region:
		g.w.journal.path(LostToTTL)
	case lives && stateOf(before) == completed && before["token"].Text != write.After["token"].Text:
		g.w.journal.path(AnswerTaken)
	}
}

// settled checks that all writes have arrived. It is called when nothing happens any more.
func (g *global) settled() {
	for id, n := range g.onWay {
		if n != 0 {
			g.w.journal.judge.broken(nil, CheckHarness, "%d writes to %s have not arrived", n, id)
		}
	}
}

// conclude counts the orders that got two different answers. It returns all records, and those that
// were in doubt.
func (g *global) conclude() (records, doubts []string) {
	said := map[order]string{}
	for _, ans := range g.w.journal.answers {
		if o, text := ans.actor.order, ans.got.text(); ans.got.carriesAnswer() {
			if was, ok := said[o]; ok && was != text {
				g.w.journal.path(AnswersDiffer)
			}
			said[o] = text
		}
	}
	for _, h := range g.w.journal.sorted() {
		records = append(records, h.order.record())
	}
	return records, slices.Sorted(maps.Keys(g.doubts))
}

// look counts what goes wrong because of separate copies: a Region grants a lock while another
// Region has the record locked or completed.
func (g *global) look(from int, write memdynamo.Write) {
	if !g.copied() || stateOf(write.After) != inProgress || stateOf(write.Before) == inProgress {
		return
	}
	for other, c := range g.copies {
		if other == from {
			continue
		}
		there, _ := c.db.Item(table, write.Key)
		switch {
		case there["token"].Text == write.Before["token"].Text:
		case stateOf(there) == inProgress && time.Now().Before(millis(there["in_progress_expiration"])):
			g.w.journal.path(TwoLocks)
		case stateOf(there) == completed && !expired(there, time.Now()):
			g.w.journal.path(LockAfterDone)
		}
	}
}

// mayExpire reports whether TTL may delete an item in a Region. It may do so only in the Region
// that wrote the item last and still uses its key, so no write of another Region is on its way.
func (w *world) mayExpire(region int, key memdynamo.Item) bool {
	g := w.global
	if g == nil || g.plan.foreignTTL {
		return true
	}
	f := &g.plan.failover
	left := f.fails && region == 0 && time.Since(w.born) >= f.at
	return !left && g.copies[region].stamps[key["id"].Text].region == region
}
