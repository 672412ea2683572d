package iam

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"hash/crc32"
	"io"
	"log"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// gate is the HTTP handler of a proxy.
type gate struct {
	checker     *Checker
	service     Service
	accessKeyID string // replaces the access key ID of a function
	warnings    *log.Logger
	pass        http.Handler
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	function, region := g.sender(r)
	if function == "" {
		g.pass.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender has gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	signed := r.Header.Get("Authorization")
	r.Header.Set("Authorization", strings.Replace(signed, "Credential="+AccessKeyID(function)+"/", "Credential="+g.accessKeyID+"/", 1))
	requests, err := g.requests(r, region, body)
	if err != nil { // pass the request on, so that the service refuses it with its own error
		g.warnings.Printf("%s sent a request that can't be read, which is passed on: %v", function, err)
		g.pass.ServeHTTP(w, r)
		return
	}
	if refused := g.check(function, requests); refused != "" {
		g.refuse(w, r, refused)
		return
	}
	g.pass.ServeHTTP(w, r)
}

// check returns the message of the refusal if a function lacks one of the permissions that its
// call needs, and otherwise "". A refused call does not count as a use of the other permissions.
func (g *gate) check(function string, requests []Request) (refused string) {
	decisions := make([]Decision, len(requests))
	for i, r := range requests {
		decisions[i] = g.checker.Decide(function, r)
		if d := decisions[i]; !d.Allowed {
			if first := g.checker.count(function, r, d); first {
				g.warnings.Printf("%s was refused %s on %s: %s", function, r.Action, r.Resource, d.Reason)
			}
			return d.Message
		}
	}
	for i, r := range requests {
		d := decisions[i]
		if first := g.checker.count(function, r, d); first && d.Undecided != "" {
			g.warnings.Printf("%s was allowed %s on %s, but AWS may refuse it: %s", function, r.Action, r.Resource, d.Undecided)
		}
	}
	return ""
}

// sender returns the logical ID of the function that sent a request, and the Region that the
// request was signed for. Both are empty if the sender is not a function.
func (g *gate) sender(r *http.Request) (function, region string) {
	found := scope.FindStringSubmatch(r.Header.Get("Authorization"))
	if found == nil {
		return "", ""
	}
	logicalID, ok := strings.CutPrefix(found[1], keyPrefix)
	if !ok || g.checker.principals[logicalID] == nil {
		return "", ""
	}
	return logicalID, found[2]
}

// scope matches the access key ID and the Region in the header Authorization of a signed
// request ("Create a signed AWS API request", under the credential scope).
var scope = regexp.MustCompile(`Credential=([^/,\s]+)/[0-9]+/([^/,\s]+)/`)

// requests returns the permissions that a call needs.
func (g *gate) requests(r *http.Request, region string, body []byte) ([]Request, error) {
	account, target := g.checker.template.AccountID, r.Header.Get("X-Amz-Target")
	if g.service == SQS {
		operation, in, err := readSQS(target, body)
		if err != nil || operation == "" {
			return nil, errors.Join(err, errNoOperation)
		}
		return sqsRequests(operation, region, account, in), nil
	}
	_, operation, ok := strings.Cut(target, ".")
	if !ok {
		return nil, errNoOperation
	}
	return g.checker.dynamoDB.requests(operation, region, account, body)
}

var errNoOperation = errors.New("the request names no operation")

// refuse replies with the service's own error: status 400 for DynamoDB, 403 for SQS. In the JSON
// protocol of SQS, the SDKs take the error code from a header, where SQS puts the code of the
// query protocol.
func (g *gate) refuse(w http.ResponseWriter, r *http.Request, message string) {
	header, status := w.Header(), http.StatusBadRequest
	header.Set("Content-Type", "application/x-amz-json-1.0")
	body, err := json.Marshal(map[string]string{"__type": "com.amazon.coral.service#AccessDeniedException", "Message": message})
	if g.service == SQS {
		status = http.StatusForbidden
		if r.Header.Get("X-Amz-Target") == "" {
			header.Set("Content-Type", "text/xml")
			body, err = xml.Marshal(queryError{Type: "Sender", Code: "AccessDenied", Message: message})
		} else {
			header.Set("X-Amzn-Query-Error", "AccessDenied;Sender")
		}
	}
	if err != nil {
		panic(err) // can't happen: all values are strings
	}
	header.Set("X-Amzn-Requestid", "00000000-0000-0000-0000-000000000000")
	header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// queryError is an error in the query protocol of SQS.
type queryError struct {
	XMLName xml.Name `xml:"http://queue.amazonaws.com/doc/2012-11-05/ ErrorResponse"`
	Type    string   `xml:"Error>Type"`
	Code    string   `xml:"Error>Code"`
	Message string   `xml:"Error>Message"`
}
