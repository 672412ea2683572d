package dynamostore

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// odd is one possible outcome of an attempt.
type odd struct {
	name string
	fault
	wrote   bool // the attempt may have written: nothing in its outcome excludes it
	settles bool // the outcome shows what happened to all earlier attempts
	cuts    bool // the caller's context ends during the attempt
}

// good responds like DynamoDB to a successful request of each operation.
func good(r *http.Request, _ dynamodb.HTTPClient) (*http.Response, error) {
	return answer(200, goodBody(r)), nil
}

func goodBody(r *http.Request) string {
	switch _, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); operation {
	case opUpdateItem:
		return `{"Attributes":` + itemJSON(claimed(claim)) + `}`
	case opGetItem:
		return `{"Item":` + itemJSON(completedItem()) + `}`
	}
	return `{}`
}

// with returns a fault that changes the good response.
func with(change func(*http.Response, string)) fault {
	return func(r *http.Request, _ dynamodb.HTTPClient) (*http.Response, error) {
		body := goodBody(r)
		resp := answer(200, body)
		change(resp, body)
		return resp, nil
	}
}

// fixed returns a fault with the same response to every request.
func fixed(status int, body string, header ...string) fault {
	return func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
		resp := answer(status, body)
		for i := 0; i+1 < len(header); i += 2 {
			resp.Header.Set(header[i], header[i+1])
		}
		return resp, nil
	}
}

func body(text string, then error) io.ReadCloser {
	return io.NopCloser(io.MultiReader(strings.NewReader(text), iotest.ErrReader(then)))
}

func crcOf(text string) string {
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(text))), 10)
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

// hangs is a body that arrives in part, and then blocks until the attempt ends.
type hangs struct {
	io.Reader
	ctx context.Context
}

func (h hangs) Read(p []byte) (int, error) {
	if n, err := h.Reader.Read(p); err == nil {
		return n, nil
	}
	<-h.ctx.Done()
	return 0, h.ctx.Err()
}

func (h hangs) Close() error { return nil }

// connected calls the hooks that net/http calls, so that the store knows whether the request ever
// had a connection.
func connected(had bool, then fault) fault {
	return func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
		if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
			trace.GetConn("dynamodb.test:80")
			if had {
				trace.GotConn(httptrace.GotConnInfo{})
			}
		}
		return then(r, next)
	}
}

type callerEndKey struct{}

// callerEnds ends the caller's context, and then continues with the given fault.
func callerEnds(then fault) fault {
	return func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
		end, _ := r.Context().Value(callerEndKey{}).(context.CancelFunc)
		end()
		return then(r, next)
	}
}

func after(d time.Duration, then fault) fault {
	return func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
		time.Sleep(d)
		return then(r, next)
	}
}

const conditionCode = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"

// cancelledFor returns the response to a transaction that was cancelled for the given reasons.
func cancelledFor(codes ...string) fault {
	reasons := make([]string, len(codes))
	for i, code := range codes {
		reasons[i] = `{"Code":"` + code + `","Message":"by the test"}`
		if code == cancelCondition && i == 0 {
			reasons[i] = `{"Code":"` + code + `","Message":"by the test","Item":` + itemJSON(completedItem()) + `}`
		}
	}
	return fixed(400, `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"Transaction cancelled","CancellationReasons":[`+
		strings.Join(reasons, ",")+`]}`)
}

func odds() []odd {
	all := []odd{
		// Successful responses in various forms.
		{name: "good", fault: good},
		{name: "good, with its CRC-32", fault: with(func(r *http.Response, body string) { r.Header.Set(fieldChecksum, crcOf(body)) })},
		{name: "good, after white space", fault: with(func(r *http.Response, body string) { r.Body = io.NopCloser(strings.NewReader("\n " + body + " \n")) })},
		{name: "good, with a member more", fault: with(func(r *http.Response, body string) {
			r.Body = io.NopCloser(strings.NewReader(strings.TrimSuffix(body, "}") + strings.Repeat(",", min(1, len(body)-2)) + `"New":{"a":[1,null]}}`))
		})},
		{name: "good, with a status of its own", wrote: true, fault: with(func(r *http.Response, _ string) { r.StatusCode = 201 })},
		{name: "good, and not to be cached", fault: with(func(r *http.Response, _ string) { r.Header.Set("Age", "7") })},

		// Responses that can't be read or don't come from DynamoDB.
		{name: "no body", wrote: true, fault: fixed(200, "")},
		{name: "204", wrote: true, fault: fixed(204, "")},
		{name: "null", wrote: true, fault: fixed(200, "null")},
		{name: "a list", wrote: true, fault: fixed(200, "[]")},
		{name: "a text", wrote: true, fault: fixed(200, `"ok"`)},
		{name: "half an object", wrote: true, fault: with(func(r *http.Response, text string) { r.Body = io.NopCloser(strings.NewReader(text[:1+len(text)/2])) })},
		{name: "cut", wrote: true, fault: with(func(r *http.Response, text string) { r.Body = body(text[:len(text)/2], io.ErrUnexpectedEOF) })},
		{name: "cut before it began", wrote: true, fault: with(func(r *http.Response, _ string) { r.Body = body("", io.ErrUnexpectedEOF) })},
		{name: "cut after its last brace", wrote: true, fault: with(func(r *http.Response, text string) { r.Body = body(text, io.ErrUnexpectedEOF) })},
		{name: "garbled", wrote: true, fault: with(func(r *http.Response, text string) { r.Body = io.NopCloser(strings.NewReader("\x00" + text[1:])) })},
		{name: "something after it", wrote: true, fault: with(func(r *http.Response, text string) { r.Body = io.NopCloser(strings.NewReader(text + "x")) })},
		{name: "zipped", wrote: true, fault: with(func(r *http.Response, text string) {
			r.Header.Set("Content-Encoding", "gzip")
			r.Body = io.NopCloser(strings.NewReader(zipped(text)))
		})},
		{name: "wrong CRC-32", wrote: true, fault: with(func(r *http.Response, text string) { r.Header.Set(fieldChecksum, crcOf(text+"x")) })},
		{name: "garbled CRC-32", wrote: true, fault: with(func(r *http.Response, _ string) { r.Header.Set(fieldChecksum, "0x7f") })},
		{name: "CRC-32 too large", wrote: true, fault: with(func(r *http.Response, _ string) { r.Header.Set(fieldChecksum, "4294967296") })},
		{name: "the CRC-32 of a cut answer", wrote: true, fault: with(func(r *http.Response, text string) {
			r.Header.Set(fieldChecksum, crcOf(text))
			r.Body = body(text[:len(text)/2], io.ErrUnexpectedEOF)
		})},
		{name: "a body that hangs", wrote: true, fault: func(r *http.Request, _ dynamodb.HTTPClient) (*http.Response, error) {
			resp := answer(200, "")
			resp.Body = hangs{strings.NewReader(`{"Attr`), r.Context()}
			return resp, nil
		}},
		{name: "HTML with 200", wrote: true, fault: fixed(200, "<html>welcome</html>", "Content-Type", "text/html")},
		{name: "HTML with 403", wrote: true, fault: fixed(403, "<html>no</html>", "Content-Type", "text/html")},
		{name: "HTML with 502", wrote: true, fault: fixed(502, "<html>bad gateway</html>", "Content-Type", "text/html", "Date", "Mon, 02 Jan 2006 15:04:05 GMT")},
		{name: "301", wrote: true, fault: fixed(301, "", "Location", "http://other.test/")},
		{name: "307", wrote: true, fault: fixed(307, "", "Location", "http://other.test/")},
		{name: "100", wrote: true, fault: fixed(100, "")},
		{name: "400 without a body", wrote: true, fault: fixed(400, "")},
		{name: "400 without a code", wrote: true, fault: fixed(400, `{}`)},
		{name: "400 cut", wrote: true, fault: func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
			resp := answer(400, "")
			resp.Body = body(`{"__type":"`+conditionCode+`","Item":{"id`, io.ErrUnexpectedEOF)
			return resp, nil
		}},
		{name: "408", wrote: true, fault: fixed(408, "")},
		{name: "429", wrote: true, fault: fixed(429, "slow down")},

		// Errors of DynamoDB.
		{name: "500 after the write", wrote: true, fault: fail(500, "InternalServerError", "by the test")},
		{name: "503 as it is", wrote: true, fault: fixed(503, "")},
		{name: "503 with a code of throttling", wrote: true, fault: fail(503, "ThrottlingException", "by the test")},
		{name: "500 with the code of a refusal", wrote: true, fault: fixed(500, `{"__type":"`+conditionCode+`"}`)},
		{name: "200 with the code of a refusal", wrote: true, fault: fixed(200, `{"__type":"`+conditionCode+`"}`)},
		{name: "code in the header", fault: fixed(400, `{"message":"by the test"}`, "X-Amzn-ErrorType", "ThrottlingException")},
		{name: "another code in the header", fault: fixed(400, `{"__type":"`+conditionCode+`","message":"by the test"}`, "X-Amzn-ErrorType", "ThrottlingException")},
		{name: "a refusal in the header", settles: true, fault: fixed(400, `{"message":"by the test"}`, "X-Amzn-ErrorType", "ConditionalCheckFailedException")},
		{name: "validation", fault: refuseAs("ValidationException")},
		{name: "no permission", fault: refuseAs("AccessDeniedException")},
		{name: "no table", fault: refuseAs("ResourceNotFoundException")},
		{name: "credentials expired", fault: refuseAs("ExpiredTokenException")},
		{name: "a new error", fault: refuseAs("SomethingNewException")},
		{name: "conflict", fault: conflict},
		{name: "in progress", wrote: true, fault: refuseAs("TransactionInProgressException")},
		{name: "other bytes", wrote: true, fault: refuseAs("IdempotentParameterMismatchException")},
		{name: "wrong clock", fault: func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
			resp, err := refuseAs("InvalidSignatureException")(nil, nil)
			resp.Header.Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
			return resp, err
		}},
		{name: "wrong signature", fault: func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
			resp, err := refuseAs("InvalidSignatureException")(nil, nil)
			resp.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
			return resp, err
		}},

		// Failed conditions.
		{name: "refused by its own record", settles: true, fault: refuseFor(itemJSON(claimed(claim)))},
		{name: "refused by a completed record", settles: true, fault: refuseFor(itemJSON(completedItem()))},
		{name: "refused by a foreign item", settles: true, fault: refuseFor(`{"id":{"S":"idem#test"},"paid":{"BOOL":true}}`)},
		{name: "refused by an item twice", settles: true, fault: refuseFor(`{"id":{"S":"idem#test"},"id":{"S":"idem#test"}}`)},
		{name: "refused by an empty item", settles: true, fault: refuseFor(`{}`)},
		{name: "refused by nothing", settles: true, fault: refuseAs("ConditionalCheckFailedException")},
		{name: "refused by an item that can't be read", wrote: true, fault: refuseFor(`{"id":{"S":7}}`)},
		{name: "refused, with a wrong CRC-32", wrote: true, fault: fixed(400, `{"__type":"`+conditionCode+`","Item":`+itemJSON(claimed(claim))+`}`, fieldChecksum, "1")},

		// No response.
		{name: "no connection", fault: refuseConnection},
		{name: "lost", wrote: true, fault: loseRequest},
		{name: "neither answer nor error", wrote: true, fault: func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) { return nil, nil }}, //nolint:nilnil // that is what this case is about
		{name: "a client's own error", wrote: true, fault: func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
			return nil, errors.New("by the test")
		}},
		{name: "a client's own timeout", wrote: true, fault: func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
			return nil, context.DeadlineExceeded
		}},
		{name: "hangs", wrote: true, fault: hang},
		{name: "hangs while connecting", fault: connected(false, hang)},
		{name: "hangs once it is sent", wrote: true, fault: connected(true, hang)},
		{name: "slow, and good", fault: after(1900*time.Millisecond, good)},
		{name: "as the attempt ends, and good", fault: after(2*time.Second, good)},
		{name: "after the attempt's end, and good", fault: after(3*time.Second, good)},

		// The caller's context ends.
		{name: "the caller ends, and it hangs", cuts: true, wrote: true, fault: callerEnds(hang)},
		{name: "the caller ends while it connects", cuts: true, fault: callerEnds(connected(false, hang))},
		{name: "the caller ends, and it is lost", cuts: true, wrote: true, fault: callerEnds(loseRequest)},
		{name: "the caller ends as the good answer comes", cuts: true, fault: callerEnds(good)},
		{name: "the caller ends as it is throttled", cuts: true, fault: callerEnds(throttle)},
		{name: "the caller ends as it is refused", cuts: true, settles: true, fault: callerEnds(refuseFor(itemJSON(completedItem())))},
		{name: "the caller ends as a foreign item refuses it", cuts: true, settles: true, fault: callerEnds(refuseFor(`{"id":{"S":"idem#test"}}`))},
		{name: "the caller ends as a 500 comes", cuts: true, wrote: true, fault: callerEnds(fail(500, "InternalServerError", "by the test"))},
		{name: "the caller ends without a connection", cuts: true, fault: callerEnds(refuseConnection)},
		{name: "the caller ends as a cut answer comes", cuts: true, wrote: true, fault: callerEnds(with(func(r *http.Response, text string) {
			r.Body = body(text[:1], io.ErrUnexpectedEOF)
		}))},

		// Transactions.
		{name: "its record is taken", settles: true, fault: cancelledFor(cancelCondition, cancelNone)},
		{name: "a write of its own is refused", fault: cancelledFor(cancelNone, cancelCondition)},
		{name: "both are refused", settles: true, fault: cancelledFor(cancelCondition, cancelCondition)},
		{name: "a write can't be made", fault: cancelledFor(cancelNone, "ValidationError")},
		{name: "its record is too large", fault: cancelledFor("ItemCollectionSizeLimitExceeded", cancelNone)},
		{name: "its record is busy", fault: cancelledFor("TransactionConflict", cancelNone)},
		{name: "a write is busy", fault: cancelledFor(cancelNone, "TransactionConflict")},
		{name: "a write is throttled", fault: cancelledFor(cancelNone, "ThrottlingError")},
		{name: "a write's table is throttled", fault: cancelledFor(cancelNone, "ProvisionedThroughputExceeded")},
		{name: "cancelled for nothing", fault: cancelledFor(cancelNone, cancelNone)},
		{name: "cancelled for too few reasons", fault: cancelledFor(cancelCondition)},
		{name: "a duplicate item", fault: cancelledFor(cancelNone, "DuplicateItem")},
	}
	for _, code := range []string{"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "Throttling"} {
		all = append(all, odd{name: code, fault: fixed(400, `{"__type":"com.amazonaws.dynamodb.v20120810#`+code+`","message":"by the test",`+
			`"throttlingReasons":[{"reason":"TableWriteKeyRangeThroughputExceeded","resource":"arn:test"}]}`)})
	}
	return all
}
