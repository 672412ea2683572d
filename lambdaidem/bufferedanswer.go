package lambdaidem

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// bufferedAnswer is an http.ResponseWriter that buffers the whole response. Its header
// initially has the fields that outer handlers, such as middleware, have set, so that the
// guarded handler can read, change and delete them, as it could without the guard.
type bufferedAnswer struct {
	outer     http.Header     // a copy of the header that outer handlers have set
	initial   http.Header     // the header as the handler gets it; header initially has the same slices
	header    http.Header     // the header that the handler sees and changes
	snapshot  http.Header     // a copy of header from when the status was written; nil before that
	unchanged map[string]bool // names of outer handlers' headers that the handler has not changed
	status    int             // 0 until the status is written
	body      bytes.Buffer
}

// newBufferedAnswer returns a bufferedAnswer. outer is the header that outer handlers have
// set, and is not changed.
func newBufferedAnswer(outer http.Header) *bufferedAnswer {
	initial := outer.Clone()
	if initial == nil {
		initial = make(http.Header)
	}
	return &bufferedAnswer{outer: initial.Clone(), initial: initial, header: maps.Clone(initial)}
}

func (k *bufferedAnswer) Header() http.Header { return k.header }

func (k *bufferedAnswer) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", status)) // as net/http does
	}
	if k.snapshot != nil || status >= 100 && status < 200 { // informational responses are not sent
		return
	}
	k.status, k.snapshot, k.unchanged = status, k.header.Clone(), make(map[string]bool, len(k.outer))
	for name, before := range k.outer {
		// A header that the handler has set again counts as changed, even with the same values:
		// before a replay, outer handlers may set other values. Setting a header makes a new slice,
		// so compare the addresses of the slices as well as their values.
		values, present := k.header[name]
		k.unchanged[name] = present && slices.Equal(before, values) && (len(values) == 0 || &k.initial[name][0] == &values[0])
	}
}

// Write appends p to the buffered body. Like the ResponseWriter of a net/http server, it returns
// an error if the status allows no body, or if the body would exceed Content-Length.
func (k *bufferedAnswer) Write(p []byte) (int, error) {
	k.WriteHeader(http.StatusOK)
	if k.status == http.StatusNoContent || k.status == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	if declared := k.snapshot.Get("Content-Length"); declared != "" {
		if n, err := strconv.ParseInt(declared, 10, 64); err == nil && n >= 0 && int64(k.body.Len()+len(p)) > n {
			return 0, http.ErrContentLength
		}
	}
	return k.body.Write(p)
}

// FlushError returns an error, because a streamed response can't be stored. It is called by
// http.ResponseController.
func (k *bufferedAnswer) FlushError() error {
	return streamRefused("an answer that is flushed")
}

// response returns the buffered response. It omits headers that outer handlers have set, because
// the outer handlers set them again before a replay. If the guarded handler changed such a header,
// these fields of the Response have the change:
//
//   - Header has the values that the guarded handler set or appended.
//   - added lists the headers whose values are appended to those of outer handlers.
//   - removed lists the headers that the guarded handler deleted.
func (k *bufferedAnswer) response() Response {
	k.WriteHeader(http.StatusOK)
	r := Response{Status: k.status, Body: k.body.String(), Header: make(map[string][]string, len(k.snapshot))}
	for name, values := range k.snapshot {
		before, had := k.outer[name]
		switch {
		case k.unchanged[name]:
		case !had:
			r.Header[name] = values
			if name == "Set-Cookie" || name == "Vary" { // append to the values that outer handlers may set before a replay
				r.added = append(r.added, name)
			}
		case len(values) > len(before) && slices.Equal(before, values[:len(before)]):
			r.Header[name] = values[len(before):]
			r.added = append(r.added, name)
		default:
			r.Header[name] = values
		}
	}
	for name := range k.outer {
		if _, present := k.snapshot[name]; !present {
			r.removed = append(r.removed, name)
		}
	}
	slices.Sort(r.added)
	slices.Sort(r.removed)
	r.trailer = k.trailer()
	return r
}

// trailer returns the trailers: headers that the handler set or changed after it wrote the status.
// The name of a trailer must begin with http.TrailerPrefix, or the header Trailer must list it. A
// listed trailer that the handler deleted after the status has the value nil.
func (k *bufferedAnswer) trailer() map[string][]string {
	var trailer map[string][]string
	for name, values := range k.header {
		if !strings.HasPrefix(name, http.TrailerPrefix) && !k.declares(name) || slices.Equal(values, k.snapshot[name]) {
			continue
		}
		if trailer == nil {
			trailer = make(map[string][]string)
		}
		trailer[name] = values
	}
	for name := range k.snapshot { // find declared trailers that were set before the status and then deleted
		if _, present := k.header[name]; !present && k.declares(name) {
			if trailer == nil {
				trailer = make(map[string][]string)
			}
			trailer[name] = nil
		}
	}
	return trailer
}

// declares reports whether the response announces a trailer with the given name. A response
// announces trailers by listing their names in the header Trailer.
func (k *bufferedAnswer) declares(trailer string) bool {
	for _, names := range k.snapshot["Trailer"] {
		for name := range strings.SplitSeq(names, ",") {
			if http.CanonicalHeaderKey(strings.TrimSpace(name)) == trailer {
				return true
			}
		}
	}
	return false
}
