package lambdaidem

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// CacheOptions bound what a guard keeps in the process's memory, to answer
// replays of finished records with no round trip to the store (R4). The zero
// value keeps nothing; once one field is set, the others have their defaults.
//
// What is kept is believed until its age or its record's expiry, less
// Options.MaxSkew, is over, whichever is first. Until then a record that is
// purged, or erased from the table by hand, may still replay in this process:
// MaxAge is the longest delay of a purge. What is over stays in memory until it
// is asked for, or until newer answers want its place.
type CacheOptions struct {
	// Entries is the most answers that are kept; beyond it the one that was not
	// asked for the longest goes. Default: 1000.
	Entries int
	// Bytes is the most memory that they take, with what the cache itself needs
	// for each (about 650 bytes). An answer larger than that is not kept. Where
	// there is room, an answer of HTTP is kept a second time once it has replayed:
	// decoded, so that its next replay costs a third as much.
	// Default: 8 MiB.
	Bytes int
	// MaxAge is how long an answer replays from memory, counted from before the
	// store was asked for it. It is measured by Options.Clock, on each use: also
	// over the time that Lambda freezes the process. Default: 1 minute.
	MaxAge time.Duration
}

func (o CacheOptions) settle() CacheOptions {
	if o == (CacheOptions{}) {
		return o
	}
	defaultTo(&o.Entries, 1000)
	defaultTo(&o.Bytes, 8<<20)
	defaultTo(&o.MaxAge, time.Minute)
	return o
}

// cache keeps finished records by their ids, in memory, the least recently used
// ones going first. Time comes in through the calls. It starts no goroutine. A
// nil cache keeps nothing.
type cache struct {
	opts CacheOptions

	mu    sync.Mutex
	kept  *simplelru.LRU[string, *memory]
	bytes int // of all that is kept
}

// memory is a finished record as the cache keeps it. Nothing of it is shared with
// a store or changed again.
type memory struct {
	id     string
	record Record                   // what judge and a replay need of it
	asked  time.Time                // before the store said so
	answer atomic.Pointer[Response] // of HTTP, decoded, once it was asked for
	bytes  int
}

// perMemory is what a record takes in memory besides its texts, in bytes: some
// 490 were measured, the map's slot and the list's links among them.
const perMemory = 512

func newCache(o CacheOptions) *cache {
	if o == (CacheOptions{}) {
		return nil
	}
	c := &cache{opts: o}
	var err error
	c.kept, err = simplelru.NewLRU(o.Entries, func(_ string, m *memory) { c.bytes -= m.bytes })
	if err != nil {
		panic(fmt.Sprintf("lambdaidem: Options.Cache.Entries: %v", err)) // Options.check has seen to it
	}
	return c
}

// get returns the record that is believed at now; nil: there is none. It must not
// be changed.
func (c *cache) get(id string, now time.Time, skew time.Duration) *memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.kept.Get(id)
	if !ok {
		return nil
	}
	// By a clock that is ahead of ours a record may be over already, and another
	// one under way in its place (G3).
	if m.record.GoneAt(now.Add(skew)) || m.overAt(now, c.opts.MaxAge) {
		c.kept.Remove(id)
		return nil
	}
	return m
}

// overAt tells whether the memory is too old. The wall clock can be set back; the
// monotonic one, which a time from time.Now has too, stands still while the
// machine is frozen. The one that went further counts. What is from the future
// has no age that could be told.
func (m *memory) overAt(now time.Time, maxAge time.Duration) bool {
	wall := now.Round(0).Sub(m.asked.Round(0))
	return wall < 0 || max(wall, now.Sub(m.asked)) >= maxAge
}

// put keeps a record that the store, asked at the given time, says is finished.
// An answer that lies apart from its record can't be kept before it is loaded.
func (c *cache) put(id string, rec Record, asked time.Time) {
	if c == nil || rec.State != Completed || rec.Result.Apart != nil {
		return
	}
	m := &memory{id: id, asked: asked, record: Record{State: rec.State, Attempt: rec.Attempt, Expires: rec.Expires,
		Fingerprint: strings.Clone(rec.Fingerprint), Result: Result{Outcome: rec.Result.Outcome, Value: bytes.Clone(rec.Result.Value)}}}
	m.bytes = perMemory + len(id) + len(rec.Fingerprint) + cap(m.record.Result.Value)
	if f := rec.Result.Failure; f != nil {
		own := Failure{Code: f.Code, Type: strings.Clone(f.Type), Message: strings.Clone(f.Message), Status: f.Status}
		m.record.Result.Failure = &own
		m.bytes += len(own.Code) + len(own.Type) + len(own.Message)
	}
	if m.bytes > c.opts.Bytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.Remove(id)
	c.kept.Add(id, m)
	for c.bytes += m.bytes; c.bytes > c.opts.Bytes; {
		c.kept.RemoveOldest()
	}
}

// putDecoded keeps the answer of a record in its decoded form too, if there is
// room: decoding takes longer than all else of a replay from memory but the
// fingerprint. No other record has to go for it, since asking the store for that
// would take longer still. The answer must not be changed afterwards.
func (c *cache) putDecoded(m *memory, answer *Response) {
	size := answer.memory()
	c.mu.Lock()
	defer c.mu.Unlock()
	if is, ok := c.kept.Peek(m.id); !ok || is != m || m.answer.Load() != nil || c.bytes+size > c.opts.Bytes {
		return
	}
	m.answer.Store(answer)
	m.bytes += size
	c.bytes += size
}

// decoded is the answer of HTTP that a replay gives again: the caller's own.
func (g *Guard) decoded(d decision) (*Response, error) {
	if d.from == nil {
		return decodeAnswer(d.value)
	}
	if answer := d.from.answer.Load(); answer != nil {
		return answer.clone(), nil
	}
	answer, err := decodeAnswer(d.value)
	if err == nil {
		g.cache.putDecoded(d.from, answer.clone())
	}
	return answer, err
}

// recall decides a call by what the process remembers of its record, if it does.
// It draws no token and takes no time: there is no attempt.
func (g *Guard) recall(ctx context.Context, c call, w work) (decision, bool) {
	if g.cache == nil {
		return decision{}, false
	}
	a := attempt{g: g, call: c, work: w, id: c.who.id(), began: g.opts.Clock(), cached: true}
	m := g.cache.get(a.id, a.began, g.opts.MaxSkew)
	if m == nil {
		return decision{}, false
	}
	a.memory = m
	return a.fromRecord(ctx, a.judge(m.record), m.record), true
}

// remember keeps a finished record whose answer the store has given whole, asked
// after this call began.
func (a *attempt) remember(rec Record) {
	if !a.cached {
		a.g.cache.put(a.id, rec, a.began)
	}
}

// rememberOwn keeps the record that this attempt has completed. Where its answer
// now lies apart, it is the one that the result had.
func (a *attempt) rememberOwn(rec Record, result Result) {
	if rec.Result.Apart != nil && result.Value != nil {
		rec.Result.Apart, rec.Result.Value = nil, result.Value
	}
	if rec.Fingerprint == "" { // a transaction's reply says no more than was asked for
		rec.Fingerprint, rec.Attempt = a.fingerprint, a.number
	}
	a.g.cache.put(a.id, rec, a.asked)
}
