package lambdaidem

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// keptAnswer is a response writer that keeps the answer back. Its header begins
// as outer handlers left it, so that a handler can read, add to and delete what
// they set, as it can without the guard.
type keptAnswer struct {
	given  http.Header // as outer handlers left it; its lists are those that the handler was given
	header http.Header
	sent   http.Header     // as it was when the status was written; nil before
	kept   map[string]bool // the names in sent that the handler did not touch
	status int
	body   bytes.Buffer
}

func keepAnswer(outer http.Header) *keptAnswer {
	before := outer.Clone()
	if before == nil {
		before = make(http.Header)
	}
	return &keptAnswer{given: before, header: maps.Clone(before)}
}

func (k *keptAnswer) Header() http.Header { return k.header }

func (k *keptAnswer) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", status)) // as net/http does
	}
	if k.sent != nil || status >= 100 && status < 200 { // informational answers are not kept
		return
	}
	k.status, k.sent, k.kept = status, k.header.Clone(), make(map[string]bool, len(k.given))
	for name, before := range k.given {
		// A list that was set anew is the handler's, equal or not.
		values, left := k.header[name]
		k.kept[name] = left && slices.Equal(before, values) && (len(values) == 0 || &before[0] == &values[0])
	}
}

// Write refuses what a net/http server refuses, by the same errors.
func (k *keptAnswer) Write(p []byte) (int, error) {
	k.WriteHeader(http.StatusOK)
	if k.status == http.StatusNoContent || k.status == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	if declared := k.sent.Get("Content-Length"); declared != "" {
		if n, err := strconv.ParseInt(declared, 10, 64); err == nil && n >= 0 && int64(k.body.Len()+len(p)) > n {
			return 0, http.ErrContentLength
		}
	}
	return k.body.Write(p)
}

// FlushError refuses to stream; http.ResponseController calls it.
func (k *keptAnswer) FlushError() error {
	return streamRefused("an answer that is flushed")
}

// response returns the answer as what the handler changed of it: on a replay outer
// handlers set their headers anew, and what the handler did to them is done
// again.
func (k *keptAnswer) response() Response {
	k.WriteHeader(http.StatusOK)
	r := Response{Status: k.status, Body: k.body.String(), Header: make(map[string][]string, len(k.sent))}
	for name, values := range k.sent {
		before, had := k.given[name]
		switch {
		case k.kept[name]:
		case !had:
			r.Header[name] = values
			if name == "Set-Cookie" || name == "Vary" { // an outer handler's may come on a replay alone
				r.added = append(r.added, name)
			}
		case len(values) > len(before) && slices.Equal(before, values[:len(before)]):
			r.Header[name] = values[len(before):]
			r.added = append(r.added, name)
		default:
			r.Header[name] = values
		}
	}
	for name := range k.given {
		if _, left := k.sent[name]; !left {
			r.removed = append(r.removed, name)
		}
	}
	slices.Sort(r.added)
	slices.Sort(r.removed)
	r.trailer = k.trailer()
	return r
}

// trailer returns what was set after the status was written, of what net/http sends
// then: names that were declared in the header Trailer, or have its prefix.
func (k *keptAnswer) trailer() map[string][]string {
	var trailer map[string][]string
	for name, values := range k.header {
		if !strings.HasPrefix(name, http.TrailerPrefix) && !k.declares(name) || slices.Equal(values, k.sent[name]) {
			continue
		}
		if trailer == nil {
			trailer = make(map[string][]string)
		}
		trailer[name] = values
	}
	for name := range k.sent { // declared, set too early, and taken back
		if _, left := k.header[name]; !left && k.declares(name) {
			if trailer == nil {
				trailer = make(map[string][]string)
			}
			trailer[name] = nil
		}
	}
	return trailer
}

func (k *keptAnswer) declares(trailer string) bool {
	for _, names := range k.sent["Trailer"] {
		for name := range strings.SplitSeq(names, ",") {
			if http.CanonicalHeaderKey(strings.TrimSpace(name)) == trailer {
				return true
			}
		}
	}
	return false
}

// send writes an answer over what outer handlers set. What the caller's
// connection makes of it can't be helped here.
func send(w http.ResponseWriter, r *Response) {
	header := w.Header()
	for _, name := range r.removed {
		delete(header, name)
	}
	for name, values := range r.Header {
		if slices.Contains(r.added, name) {
			values = append(slices.Clip(header[name]), values...)
		}
		header[name] = values
	}
	for _, c := range r.Cookies {
		header.Add("Set-Cookie", c)
	}
	body := []byte(r.Body)
	if r.Base64 {
		if decoded, err := base64.StdEncoding.DecodeString(r.Body); err == nil {
			body = decoded
		}
	}
	if r.Status != http.StatusOK || len(body) == 0 {
		w.WriteHeader(r.Status)
	}
	if len(body) > 0 {
		_, _ = w.Write(body)
	}
	for name, values := range r.trailer {
		if len(values) == 0 {
			delete(header, name)
			continue
		}
		header[name] = values
	}
}
