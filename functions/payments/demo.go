package main

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/lambdaidem/toolkit/functions/internal/demo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Headers that a demonstration may send. They are not part of the fingerprint.
const (
	delayHeader = "X-Demo-Delay-Ms"      // milliseconds to wait before anything happens
	deafHeader  = "X-Demo-Deaf-Ms"       // milliseconds to wait without heed for the time that is left
	failHeader  = "X-Demo-Fail-Attempts" // answer 500 up to and including this attempt
	hangHeader  = "X-Demo-Hang-Attempts" // never return, up to and including this attempt
	dieHeader   = "X-Demo-Die-Attempts"  // kill the process after the handler, up to and including this attempt
)

// maxDelay is the longest delay, in milliseconds.
const maxDelay = 60_000

// demonstrated lets a client ask for a slow handler, for one that does not obey its
// context and for one that fails, hangs or dies, so that each can be seen over real HTTP. It is there only where DEMO=1 is set, which
// template.yaml does not do: nobody outside should be able to ask for this.
func demonstrated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		delay, err := demoNumber(r, delayHeader, maxDelay)
		if err != nil {
			problem{http.StatusBadRequest, "demo_invalid", err.Error()}.write(w)
			return
		}
		deaf, err := demoNumber(r, deafHeader, maxDelay)
		if err != nil {
			problem{http.StatusBadRequest, "demo_invalid", err.Error()}.write(w)
			return
		}
		attempts := map[string]int{failHeader: 0, hangHeader: 0, dieHeader: 0}
		for header := range attempts {
			if attempts[header], err = demoNumber(r, header, 100); err != nil {
				problem{http.StatusBadRequest, "demo_invalid", err.Error()}.write(w)
				return
			}
		}
		time.Sleep(time.Duration(deaf) * time.Millisecond)
		timer := time.NewTimer(time.Duration(delay) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			problem{http.StatusServiceUnavailable, "demo_out_of_time", "The asked delay was longer than the time left."}.write(w)
			return
		}
		attempt := lambdaidem.Attempt(r.Context())
		asked := func(header string) bool { return 0 < attempt && attempt <= attempts[header] }
		if asked(hangHeader) {
			select {}
		}
		if asked(failHeader) {
			problem{http.StatusInternalServerError, "demo_failure", fmt.Sprintf("Attempt %d failed, as was asked for.", attempt)}.write(w)
			return
		}
		next.ServeHTTP(w, r)
		if asked(dieHeader) {
			demo.Die() // before the guard commits
		}
	})
}

// demoNumber reads a header that may be absent, which is 0.
func demoNumber(r *http.Request, header string, most int) (int, error) {
	text := r.Header.Get(header)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%s: must be a number from 0 to %d", header, most)
	}
	return n, nil
}
