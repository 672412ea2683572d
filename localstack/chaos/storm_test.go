//go:build chaos

package chaos

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"
)

// stormClients is the number of clients. Half of them repeat one transfer, half another.
const stormClients = 500

// TestChaosStorm has 500 clients send two transfers at once, to the same account, while the
// processes that serve them are killed and stopped at random. However often the clients retry,
// there are two transfers with one outside effect each, one answer for each key, and no cent is
// made or lost.
func TestChaosStorm(t *testing.T) {
	w := newWorld(t, setting{timeout: loadTimeout, killDelay: 3 * loadTimeout})
	var weather weather
	w.wires.otherwise = weather.fault
	keys := [2]string{w.newTransfer(t), ""}
	for keys[1] == "" || recipientOf(keys[1]) != recipientOf(keys[0]) {
		keys[1] = w.newTransfer(t)
	}
	patient, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	storm, calm := context.WithTimeout(patient, 20*time.Second)
	defer calm()

	var clients sync.WaitGroup
	answers := make([]Answer, stormClients)
	for i := range stormClients {
		clients.Go(func() { answers[i] = w.insist(patient, keys[i%2], shortDelay) })
	}
	go func() {
		clients.Wait()
		calm()
	}()
	killed, stopped := w.disturb(storm, &weather.atWork)
	clients.Wait()

	t.Logf("killed %d processes in mid-flight, stopped %d past their lease", killed, stopped)
	w.report(t)
	for i, a := range answers {
		if a.Status != http.StatusCreated || a.Body != answers[i%2].Body {
			t.Errorf("client %d got %d %s; another one of its key %s", i, a.Status, a.Body, answers[i%2].Body)
		}
	}
	if b := w.books(t); len(b.Transfers) != 2 || len(b.Effects) != 2 {
		t.Errorf("%d transfers and %d outside effects; want two of each", len(b.Transfers), len(b.Effects))
	}
	if killed == 0 {
		t.Error("nothing died: the run proved nothing")
	}
}
