package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// ofGateway has the headers that the gateway sets, not the function. They differ from answer to
// answer. Every other header belongs to the answer and must be replayed.
var ofGateway = map[string]bool{
	"Apigw-Requestid":  true, // an HTTP API
	"Connection":       true,
	"Date":             true,
	"Keep-Alive":       true,
	"Server":           true,
	"Via":              true,
	"X-Amz-Apigw-Id":   true, // a REST API
	"X-Amzn-Requestid": true,
	"X-Amzn-Trace-Id":  true,
}

// notReplay returns why again is not a replay of first: a different status, body or header, or a
// wrong or missing replay header. It returns none if again is a replay.
func notReplay(first, again answer) []string {
	if again.err != nil {
		return []string{again.err.Error()}
	}
	var wrong []string
	if again.status != first.status {
		wrong = append(wrong, fmt.Sprintf("the replay has status %d, the first answer %d", again.status, first.status))
	}
	if again.body != first.body {
		wrong = append(wrong, fmt.Sprintf("the replay has the body %q, the first answer %q", again.body, first.body))
	}
	names := http.Header{}
	maps.Copy(names, first.header)
	maps.Copy(names, again.header)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if name == http.CanonicalHeaderKey(replayMark) || ofGateway[name] {
			continue
		}
		if was, is := first.header.Values(name), again.header.Values(name); !slices.Equal(was, is) {
			wrong = append(wrong, fmt.Sprintf("the replay has %s %q, the first answer %q", name, is, was))
		}
	}
	if got := again.header.Values(replayMark); !slices.Equal(got, []string{"true"}) {
		wrong = append(wrong, fmt.Sprintf("the replay has %s %q, not \"true\"", replayMark, got))
	}
	return wrong
}

// notFirst returns why an answer is not that of a handler that has just run: a wrong status or
// code, or a replay header.
func notFirst(a answer, status int, code string) []string {
	wrong := notAnswer(a, status, code)
	if got := a.header.Values(replayMark); len(got) != 0 {
		wrong = append(wrong, fmt.Sprintf("it has %s %q, and is no replay", replayMark, got))
	}
	return wrong
}

// notAnswer returns why an answer does not have the status, and the code of a problem document.
// An empty code means that the answer must have none.
func notAnswer(a answer, status int, code string) []string {
	switch {
	case a.err != nil:
		return []string{a.err.Error()}
	case a.status != status:
		return []string{fmt.Sprintf("the status is %d, not %d: %s", a.status, status, a.body)}
	case a.code() != code:
		return []string{fmt.Sprintf("the code is %q, not %q: %s", a.code(), code, a.body)}
	}
	return nil
}
