package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// ofGateway are the headers that a gateway writes, not the function, so that they differ
// from answer to answer. Every other header belongs to the answer, and replays.
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

// notReplay says what keeps again from being a replay of first: another status, body or
// header, or a mark that is missing, or where it must not be.
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

// notFirst says what keeps an answer from being one of a handler that ran now.
func notFirst(a answer, status int, code string) []string {
	wrong := notAnswer(a, status, code)
	if got := a.header.Values(replayMark); len(got) != 0 {
		wrong = append(wrong, fmt.Sprintf("it has %s %q, and is no replay", replayMark, got))
	}
	return wrong
}

// notAnswer says what keeps an answer from having a status, and the code of a problem
// document where there is to be one.
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
