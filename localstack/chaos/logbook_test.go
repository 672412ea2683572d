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

// logbook keeps what the functions log, and reads the guard's events in it.
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

// event is what the guard logs of an outcome (O1). A key stands there as the
// beginning of its hash.
type event struct {
	Message string          `json:"msg"`
	Outcome lambdaidem.Kind `json:"outcome"`
	Key     string          `json:"key"`
	Reason  string          `json:"reason"`

	Metrics json.RawMessage `json:"_aws"` // of a line of metrics, which tells of the same event again
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

// counts are the events by outcome; of one key, if it is not empty.
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

// awaitEvent waits until the guard has logged an outcome for a key: a process
// that is signalled runs on in its own time.
func (w *world) awaitEvent(t *testing.T, key string, kind lambdaidem.Kind) {
	t.Helper()
	eventually(t, "the event "+string(kind), func() bool { return w.log.counts(key)[kind] > 0 })
}
