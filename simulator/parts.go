package simulator

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// This file has answers that are compressed, or stored in items of their own. For this purpose the
// store's thresholds are tiny.

// large has a plan's parameters for large answers. The zero value means that there are none.
type large struct {
	inline  int  // Options.MaxInline; 0: the store's own thresholds
	padding int  // the number of bytes that are added to answers, so that they can be compressed
	loses   bool // parts are lost at random times, as if TTL had deleted them
}

// newLarge gives some plans large answers. It draws from a random stream of its own, so
// that the rest of each plan does not depend on it.
func newLarge(seed uint64, p *plan) {
	r := rand.New(rand.NewPCG(seed, 0x1a49e))
	if r.Float64() >= 0.2 {
		return
	}
	p.large = large{inline: []int{20, 20, 1000}[r.IntN(3)], padding: []int{0, 3000}[r.IntN(2)], loses: r.Float64() < 0.3}
	if p.large.padding == 0 {
		p.large.inline = 20
	}
}

// options makes the store's thresholds tiny.
func (l *large) options(o *dynamostore.Options) {
	if l.inline > 0 {
		o.MaxInline, o.CompressFrom = l.inline, 1
	}
}

// pad returns the text that is added to answers.
func (l *large) pad() string { return strings.Repeat(" .", l.padding/2) }

// losses deletes parts of answers at random times.
func (w *world) losses() {
	w.afterFunc(w.plan.paced(w.randomMillis(10_000)), func() {
		if w.isHealed() {
			return
		}
		for _, item := range w.dbs[0].Items(table) {
			if isPart(item) && w.journal.named(item["id"].Text) && w.rng.IntN(2) == 0 {
				w.mustServe("DeleteItem", fmt.Sprintf(`{"TableName":%q,"Key":{"id":{"S":%q}}}`, table, item["id"].Text))
			}
		}
		w.losses()
	})
}

// named reports whether a completed record has a part with that ID. A part that no record has may
// belong to an attempt that is about to complete.
func (b *journal) named(id string) bool {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	for _, h := range b.records {
		if slices.ContainsFunc(h.lives, func(l *life) bool { return slices.Contains(l.parts, id) }) {
			return true
		}
	}
	return false
}

func isPart(item memdynamo.Item) bool { _, ok := item["part"]; return ok }

// part records a write to a part of an answer. It reports whether the write was one.
func (b *journal) part(w memdynamo.Write) bool {
	if !isPart(w.Before) && !isPart(w.After) {
		return false
	}
	id := w.Key["id"].Text
	if w.After == nil {
		b.noteLocked(nil, "a part is lost")
		b.paths[PartLost]++
		delete(b.parts, id)
		for _, h := range b.records {
			for _, l := range h.lives {
				if l.ended.IsZero() && slices.Contains(l.parts, id) {
					l.lost = true
					b.judge.partGone(w, l)
				}
			}
		}
		return true
	}
	b.paths[PartWritten]++
	b.judge.part(b.w.serving.actor, w)
	b.parts[id] = w.After
	return true
}

// keepAnswer records the answer that a completed record stores, in the record or in parts,
// compressed or not.
func (l *life) keepAnswer(b *journal, a *actor) {
	item := l.completed
	stored := item["data"].Text
	if count := number(item["parts"].Map["count"]); count > 0 {
		sum := base64.RawURLEncoding.EncodeToString([]byte(item["parts"].Map["checksum"].Text))
		stored = ""
		for n := range count {
			id := fmt.Sprintf("%s#%d#%s", item["id"].Text, n+1, sum)
			l.parts = append(l.parts, id)
			p, ok := b.parts[id]
			b.judge.partOf(a, item, p, ok)
			stored += p["data"].Text
		}
		b.paths[AnswerApart]++
	}
	if item["encoding"].Text == "gzip" {
		b.paths[AnswerCompressed]++
		r, err := gzip.NewReader(strings.NewReader(stored))
		if err == nil {
			var plain []byte
			plain, err = io.ReadAll(r)
			stored = string(plain)
		}
		b.judge.readable(a, err)
	}
	var s struct {
		StatusCode int    `json:"statusCode"`
		Body       string `json:"body"`
	}
	err := json.Unmarshal([]byte(stored), &s)
	b.judge.readable(a, err)
	l.text = fmt.Sprintf("%d %s", s.StatusCode, s.Body)
}
