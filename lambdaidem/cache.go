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

	"github.com/lambdaidem/toolkit/internal/elapsed"
)

// CacheOptions configure a guard's cache of finished records, which answers replays from the memory
// of the process without a request to the store. If all fields are zero, nothing is cached. If any
// field is set, the others have their defaults.
//
// A process stops using a cached answer when the answer is older than MaxAge, or when less than
// Options.MaxSkew is left until the record expires. Before that, the process may replay a record
// that has been purged or deleted from the table. An answer that is too old stays in memory until
// it is requested again or evicted by a newer answer.
type CacheOptions struct {
	// Entries is the maximum number of cached answers. The cache evicts the least
	// recently used answer to make room for a new one. Default: 1000.
	Entries int
	// Bytes is the maximum memory of all cached answers together, including the cache's
	// overhead of about 650 bytes for each. An answer larger than Bytes is not cached. If
	// there is room, the first replay of an HTTP answer from the cache also caches its
	// decoded form, which makes every later replay three times as fast. Default: 8 MiB.
	Bytes int
	// MaxAge is how long a cached answer is used. The time counts from the request that read the
	// answer from the store, or stored it there. So no process uses an answer for longer than
	// MaxAge after a purge has erased it. Time during which Lambda had frozen the process counts
	// too. Default: 1 minute.
	MaxAge time.Duration
}

func (o CacheOptions) withDefaults() CacheOptions {
	if o == (CacheOptions{}) {
		return o
	}
	defaultTo(&o.Entries, 1000)
	defaultTo(&o.Bytes, 8<<20)
	defaultTo(&o.MaxAge, time.Minute)
	return o
}

// cache maps record ids to finished records. When the cache is full, it evicts the record that was
// used least recently. Its methods take the current time as an argument. It starts no goroutine. A
// nil cache stores nothing.
type cache struct {
	opts CacheOptions

	mu      sync.Mutex
	entries *simplelru.LRU[string, *cacheEntry]
	bytes   int // the total size of all entries
}

// cacheEntry is an entry of the cache. It shares no memory with the record that the store
// returned. While the entry is in the cache, only the fields answer and bytes change.
type cacheEntry struct {
	id       string
	record   Record                   // a copy with the fields that attempt.meaningOf and a replay need
	ageStart time.Time                // a time before the request that read or stored the record; the entry's age counts from then
	answer   atomic.Pointer[Response] // the decoded HTTP response; nil until the first replay from the cache
	bytes    int
}

// entryOverhead is the size of a cache entry in bytes, without its strings, such as the
// record's id. Measurements gave about 490 bytes, including the slot in the map and the
// links of the list.
const entryOverhead = 512

func newCache(o CacheOptions) *cache {
	if o == (CacheOptions{}) {
		return nil
	}
	c := &cache{opts: o}
	var err error
	c.entries, err = simplelru.NewLRU(o.Entries, func(_ string, m *cacheEntry) { c.bytes -= m.bytes })
	if err != nil {
		panic(fmt.Sprintf("lambdaidem: Options.Cache.Entries: %v", err)) // Options.check prevents this
	}
	return c
}

// get returns the entry for a record id, or nil if the cache has no entry that may still be
// used. now is the current time. skew is Options.MaxSkew, the largest difference between the
// clocks of two machines. The caller must not change the entry.
func (c *cache) get(id string, now time.Time, skew time.Duration) *cacheEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.entries.Get(id)
	if !ok {
		return nil
	}
	// Remove an entry that is older than MaxAge, or whose age is unknown because the clock was set
	// back. Also remove an entry whose record expires in less than skew: on a machine whose clock
	// is ahead, another attempt may already be running.
	age, known := elapsed.Between(m.ageStart, now)
	if m.record.GoneAt(now.Add(skew)) || !known || age >= c.opts.MaxAge {
		c.entries.Remove(id)
		return nil
	}
	return m
}

// put caches rec if it is completed. The age of the entry counts from ageStart, a time before the
// request to the store that returned rec. put does not cache a record whose answer is stored
// outside the record and has not been loaded (Result.Apart).
func (c *cache) put(id string, rec Record, ageStart time.Time) {
	if c == nil || rec.State != Completed || rec.Result.Apart != nil {
		return
	}
	m := &cacheEntry{id: id, ageStart: ageStart, record: Record{State: rec.State, Attempt: rec.Attempt, Expires: rec.Expires,
		Fingerprint: strings.Clone(rec.Fingerprint), Result: Result{Outcome: rec.Result.Outcome, Value: bytes.Clone(rec.Result.Value)}}}
	m.bytes = entryOverhead + len(id) + len(rec.Fingerprint) + cap(m.record.Result.Value)
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
	c.entries.Remove(id)
	c.entries.Add(id, m)
	for c.bytes += m.bytes; c.bytes > c.opts.Bytes; {
		c.entries.RemoveOldest()
	}
}

// putDecoded adds the decoded response to an entry, if there is room. It never evicts another
// entry to make room: loading that entry from the store again would take longer than decoding the
// response. The caller must not change the response afterwards.
func (c *cache) putDecoded(m *cacheEntry, answer *Response) {
	size := answer.memorySize()
	c.mu.Lock()
	defer c.mu.Unlock()
	if is, ok := c.entries.Peek(m.id); !ok || is != m || m.answer.Load() != nil || c.bytes+size > c.opts.Bytes {
		return
	}
	m.answer.Store(answer)
	m.bytes += size
	c.bytes += size
}

// decoded returns the HTTP response to replay. The caller may change it. If the record came
// from the cache, and the cache has room, decoded also caches the response, so that it is
// decoded only once.
func (g *Guard) decoded(d decision) (*Response, error) {
	if d.entry == nil {
		return decodeAnswer(d.value)
	}
	if answer := d.entry.answer.Load(); answer != nil {
		return answer.clone(), nil
	}
	answer, err := decodeAnswer(d.value)
	if err == nil {
		g.cache.putDecoded(d.entry, answer.clone())
	}
	return answer, err
}

// recall looks for the call's record in the cache, without a request to the store. If the cache has
// the record, recall returns what the caller receives, and true. The handler then does not run, so
// recall needs neither a fencing token nor a lease. Otherwise recall returns false.
func (g *Guard) recall(ctx context.Context, c call, w work) (decision, bool) {
	if g.cache == nil {
		return decision{}, false
	}
	a := attempt{g: g, call: c, work: w, id: c.id, clockStart: g.opts.Clock(), cached: true}
	m := g.cache.get(a.id, a.clockStart, g.opts.MaxSkew)
	if m == nil {
		return decision{}, false
	}
	a.entry = m
	return a.fromRecord(ctx, a.meaningOf(m.record), m.record), true
}

// remember caches a finished record with its complete answer, unless the record came from the
// cache. The entry's age counts from the beginning of the attempt, not from the store's reply; see
// CacheOptions.MaxAge.
func (a *attempt) remember(rec Record) {
	if !a.cached {
		a.g.cache.put(a.id, rec, a.clockStart)
	}
}

// rememberOwn caches the record that this attempt has completed with result. If the store
// keeps the answer outside the record, the entry gets the answer from result.
func (a *attempt) rememberOwn(rec Record, result Result) {
	if rec.Result.Apart != nil && result.Value != nil {
		rec.Result.Apart, rec.Result.Value = nil, result.Value
	}
	if rec.Fingerprint == "" { // the reply to a transaction lacks these fields
		rec.Fingerprint, rec.Attempt = a.fingerprint, a.number
	}
	a.g.cache.put(a.id, rec, a.lastResultMade)
}
