//go:build chaos

package chaos

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// logbook keeps what the functions log, and finds the guard's events in it.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write is called with whole lines.
func (l *logbook) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logbook) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.text.Bytes())
}

// event is a line that the guard logs about an outcome. Key is the beginning of the key's SHA-256
// hash, in hexadecimal digits.
type event struct {
	Message string          `json:"msg"`
	Outcome lambdaidem.Kind `json:"outcome"`
	Key     string          `json:"key"`
	Reason  string          `json:"reason"`

	Metrics json.RawMessage `json:"_aws"` // only in lines of metrics, which repeat the other lines' events
}

func (l *logbook) events() []event {
	var all []event
	for line := range bytes.Lines(l.bytes()) {
		start := bytes.IndexByte(line, '{')
		if start < 0 {
			continue
		}
		var e event
		if json.Unmarshal(line[start:], &e) == nil && e.Outcome != "" && e.Metrics == nil {
			all = append(all, e)
		}
	}
	return all
}

// counts returns the number of events, by outcome. It counts the events of one key, or of all keys
// if key is empty.
func (l *logbook) counts(key string) map[lambdaidem.Kind]int {
	sum := sha256.Sum256([]byte(key))
	counts := map[lambdaidem.Kind]int{}
	for _, e := range l.events() {
		if key == "" || e.Key == hex.EncodeToString(sum[:6]) {
			counts[e.Outcome]++
		}
	}
	return counts
}

// awaitEvent waits until the guard has logged an outcome for a key. It may take a while until a
// process that was stopped does so.
func (w *world) awaitEvent(t *testing.T, key string, kind lambdaidem.Kind) {
	t.Helper()
	eventually(t, "the event "+string(kind), func() bool { return w.log.counts(key)[kind] > 0 })
}
