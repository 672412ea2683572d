package main

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/lambdaidem/toolkit/functions/internal/demo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Headers that a demonstration may send. The fingerprint does not cover them.
const (
	delayHeader = "X-Demo-Delay-Ms"      // milliseconds to wait before the handler runs; ends early with the context
	deafHeader  = "X-Demo-Deaf-Ms"       // milliseconds to wait before the handler runs, even if the context ends
	failHeader  = "X-Demo-Fail-Attempts" // number of the last attempt that answers 500
	hangHeader  = "X-Demo-Hang-Attempts" // number of the last attempt that never returns
	dieHeader   = "X-Demo-Die-Attempts"  // number of the last attempt whose process is killed after the handler has run
)

// maxDelay is the longest delay, in milliseconds.
const maxDelay = 60_000

// demonstrated returns a handler that is slow, ignores its context, fails, hangs or dies if
// the headers of a request ask for it. Use it only if the environment variable DEMO is 1.
// template.yaml does not set DEMO, because no client of a real service may make it fail.
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
			demo.Die() // before the guard commits the enlisted writes
		}
	})
}

// demoNumber returns the number in a header, from 0 to most. It is 0 if the header is
// absent.
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
