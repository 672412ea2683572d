package direct

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/direct/sigv4"
	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
)

// rehearse builds a test request twice: through the SDK's client, which does not send it, and
// without the SDK. It returns an error if the two requests differ. The client then has a setting
// that this package can't imitate, or the SDK's version builds requests differently. rehearse also
// sets t.head, from the header of the SDK's request, and t.signsItself.
func (t *Transport) rehearse() error {
	// Check these two settings here, although Lost reports them too: if Options.Transport is
	// TransportDirect, the store ignores what Lost reports.
	if t.options.Credentials == nil {
		return errors.New("the client is anonymous: it has no credentials")
	}
	if t.options.EndpointDiscovery.EnableEndpointDiscovery == aws.EndpointDiscoveryEnabled {
		// With endpoint discovery, the SDK's client asks DynamoDB in the background for an
		// endpoint. This package does not learn that endpoint, and would use another one.
		return errors.New("the client discovers its endpoint")
	}
	ctx, actor := context.Background(), rehearsalCredentials{t.options.Credentials}
	table := aws.String("rehearsal")
	var sdks *http.Request
	var body []byte
	_, err := t.client.SDK().GetItem(ctx, &dynamodb.GetItemInput{TableName: table, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{}}}, func(o *dynamodb.Options) {
		o.Credentials = actor
		o.HTTPClient = doFunc(func(r *http.Request) (*http.Response, error) {
			sdks = r
			body, _ = io.ReadAll(r.Body) // never fails: the body is in memory
			return refusedRehearsal(r), nil
		})
	})
	if sdks == nil {
		return fmt.Errorf("the SDK's client makes no request to go by: %w", err)
	}
	t.head = headOf(sdks.Header, wire.GetItem)

	creds, _ := actor.Retrieve(ctx) // never fails
	at, err := time.Parse(sigv4.TimeFormat, sdks.Header.Get(fieldDate))
	if err != nil {
		return fmt.Errorf("the SDK dates its requests in another way: %w", err)
	}
	dest, err := t.resolve(ctx, creds.AccountID, []string{*table}, false)
	if err != nil {
		return err
	}
	ours := func(creds aws.Credentials, signsItself bool) (*http.Request, error) {
		t.signsItself = signsItself
		r, err := t.request(ctx, &attempt{}, &wire.Request{Operation: wire.GetItem, Body: body}, dest, &creds, sdks.Header.Get(fieldInvocation), at)
		if err != nil {
			return nil, fmt.Errorf("sign: %w", err)
		}
		return r, nil
	}
	bySigner, err := ours(creds, false)
	if err == nil {
		err = differ(bySigner, sdks)
	}
	// Package sigv4 may replace only the SDK's own signer, and only if that signer logs nothing.
	if err != nil || !silent(t.options.HTTPSignerV4) {
		return err
	}
	alike := func(creds aws.Credentials, bySigner *http.Request) bool {
		own, err := ours(creds, true)
		return err == nil && differ(own, bySigner) == nil
	}
	bare := creds
	bare.SessionToken = "" // also compare the signatures of a request without a session token
	bareBySigner, err := ours(bare, false)
	t.signsItself = err == nil && alike(creds, bySigner) && alike(bare, bareBySigner)
	return nil
}

// refusedRehearsal returns a response to the test request that the SDK builds for rehearse. The
// request is not sent to DynamoDB, but the SDK's client needs a response. The response is an
// error that the SDK does not retry, so the SDK builds only one request.
func refusedRehearsal(r *http.Request) *http.Response {
	const body = `{"__type":"com.amazonaws.dynamodb.v20120810#ValidationException","message":"rehearsal"}`
	return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
}

// differ returns an error if this package's request and the SDK's request are not the same.
func differ(ours, sdks *http.Request) error {
	switch {
	case ours.Method != sdks.Method || ours.URL.String() != sdks.URL.String() || ours.Host != sdks.Host:
		return fmt.Errorf("the SDK's client sends a %s to %s (%s), where this package would send a %s to %s (%s)",
			sdks.Method, sdks.URL, sdks.Host, ours.Method, ours.URL, ours.Host)
	case ours.ContentLength != sdks.ContentLength:
		return errors.New("the SDK's client gives another Content-Length")
	}
	for name := range sdks.Header {
		if !reflect.DeepEqual(ours.Header[name], sdks.Header[name]) {
			return fmt.Errorf("the header field %s of the SDK's client is made in another way than this package knows", name)
		}
	}
	if len(ours.Header) != len(sdks.Header) {
		return errors.New("the SDK's client sends fewer header fields")
	}
	return nil
}

// headOf returns a description of the header fields that all requests of a client have. It derives
// the description from h, the header of a request that the SDK has signed for the given operation.
// The credentials of that request must have had a session token, so that h contains the token's
// field.
func headOf(h http.Header, operation wire.Operation) head {
	of := head{targets: map[wire.Operation]string{}}
	service, _ := strings.CutSuffix(h.Get(fieldTarget), string(operation))
	for _, operation := range []wire.Operation{wire.PutItem, wire.UpdateItem, wire.GetItem, wire.TransactWriteItems} {
		of.targets[operation] = service + string(operation)
	}
	left := map[string]string{} // the names of the fields that are not yet in the head, by their lower-case form
	for name := range h {
		left[strings.ToLower(name)] = name
	}
	for _, apart := range []string{fieldTrace, fieldSignature} {
		delete(left, strings.ToLower(apart))
	}
	add := func(lower, line string) {
		f := headField{name: left[lower], line: line}
		switch f.name {
		case fieldTarget, fieldInvocation, fieldDate, fieldToken:
		default:
			f.value = strings.Join(h[f.name], "") // one value; if there are several, differ reports it
		}
		delete(left, lower)
		of.fields = append(of.fields, f)
	}
	names := signedNames(h)
	for _, lower := range names {
		switch line := lower + ":"; line {
		case lineHost, lineLength:
			of.fields = append(of.fields, headField{line: line})
		default:
			// The SDK may sign a field that is not in the request's header, so its value is
			// unknown. Leave it out: rehearse then finds that the signatures differ, and the direct
			// transport is not used.
			if _, sent := left[lower]; sent {
				add(lower, line)
			}
		}
	}
	for _, lower := range slices.Sorted(maps.Keys(left)) {
		add(lower, "")
	}
	of.signedSession = strings.Join(names, ";")
	of.signed = strings.Join(slices.DeleteFunc(names, func(name string) bool { return name == strings.ToLower(fieldToken) }), ";")
	return of
}

type doFunc func(*http.Request) (*http.Response, error)

func (f doFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }
