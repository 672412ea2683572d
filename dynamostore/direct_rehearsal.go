package dynamostore

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

	"github.com/lambdaidem/toolkit/dynamostore/internal/sigv4"
)

// rehearse has the SDK's client make a request, which goes nowhere, and takes from
// it what all requests begin with. It returns an error unless the same request,
// made here, is the same in every field and in its signature: then something in the
// client's settings, or in a later SDK, is not as this package knows it.
func (d *direct) rehearse() error {
	if d.line == nil {
		return fmt.Errorf("the store's HTTP client was replaced by a %T", d.options.HTTPClient)
	}
	// The first two come of a transport that was forced.
	if d.options.Credentials == nil {
		return errors.New("the client is anonymous: it has no credentials")
	}
	if d.options.EndpointDiscovery.EnableEndpointDiscovery == aws.EndpointDiscoveryEnabled {
		// It sends requests of its own with the call's context, from a goroutine: one of
		// them could take the outcome of the first attempt for its own (X8).
		return errors.New("the client discovers its endpoint")
	}
	ctx, actor := context.Background(), rehearsing{d.options.Credentials}
	table := aws.String("rehearsal")
	var sdks *http.Request
	var body []byte
	_, err := d.sdk.GetItem(ctx, &dynamodb.GetItemInput{TableName: table, Key: attributes{"id": str("")}}, func(o *dynamodb.Options) {
		o.Credentials = actor
		o.HTTPClient = doFunc(func(r *http.Request) (*http.Response, error) {
			sdks = r
			body, _ = io.ReadAll(r.Body) // it is in memory
			return refusedRehearsal(r), nil
		})
	})
	if sdks == nil {
		return fmt.Errorf("the SDK's client makes no request to go by: %w", err)
	}
	if d.head, err = headOf(sdks.Header, opGetItem); err != nil {
		return err
	}

	creds, _ := actor.Retrieve(ctx) // no error
	at, err := time.Parse(sigv4.TimeFormat, sdks.Header.Get(fieldDate))
	if err != nil {
		return fmt.Errorf("the SDK dates its requests in another way: %w", err)
	}
	to, err := d.resolve(ctx, creds.AccountID, []string{*table}, false)
	if err != nil {
		return err
	}
	same := func() error {
		ours, err := d.request(ctx, &attempt{bytes: &sameBody{plain: body}}, opGetItem, to, &creds, sdks.Header.Get(fieldInvocation), at)
		if err != nil {
			return fmt.Errorf("sign: %w", err)
		}
		return differ(ours, sdks)
	}
	if d.signsItself = silent(d.options.HTTPSignerV4); d.signsItself && same() == nil {
		return nil
	}
	d.signsItself = false
	return same()
}

// refusedRehearsal is an answer that ends a call: it is not worth another attempt.
func refusedRehearsal(r *http.Request) *http.Response {
	const body = `{"__type":"com.amazonaws.dynamodb.v20120810#ValidationException","message":"rehearsal"}`
	return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
}

// differ returns an error if the two requests are not the same.
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

// headOf is what a request of a session's credentials has that is the same in all,
// and what is another in each.
func headOf(h http.Header, operation string) (head, error) {
	of := head{targets: map[string]string{}}
	service, _ := strings.CutSuffix(h.Get(fieldTarget), operation)
	for _, operation := range []string{opPutItem, opUpdateItem, opGetItem, opTransact} {
		of.targets[operation] = service + operation
	}
	names, err := signedBy(h)
	if err != nil {
		return head{}, err
	}
	of.signedSession = strings.Join(names, ";")
	of.signed = strings.Join(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == strings.ToLower(fieldToken) }), ";")

	left := maps.Clone(h)
	for _, each := range []string{fieldTrace, fieldSignature} {
		delete(left, each)
	}
	add := func(name, line string) {
		f := headField{name: name, line: line}
		switch name {
		case fieldTarget, fieldInvocation, fieldDate, fieldToken:
		default:
			f.value = h.Get(name)
		}
		delete(left, name)
		of.fields = append(of.fields, f)
	}
	for _, name := range names {
		switch line := name + ":"; line {
		case lineHost, lineLength:
			of.fields = append(of.fields, headField{line: line})
		default:
			add(http.CanonicalHeaderKey(name), line)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		add(name, "")
	}
	return of, nil
}

// rehearsing is in the place of the user's credentials, which may come over the
// network.
type rehearsing struct{ users aws.CredentialsProvider }

func (rehearsing) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "REHEARSAL", SecretAccessKey: "REHEARSAL", SessionToken: "REHEARSAL", AccountID: "123456789012"}, nil
}

// ProviderSources is what the SDK tells of the credentials in its User-Agent.
func (r rehearsing) ProviderSources() []aws.CredentialSource {
	if of, ok := r.users.(aws.CredentialProviderSource); ok {
		return of.ProviderSources()
	}
	return nil
}

type doFunc func(*http.Request) (*http.Response, error)

func (f doFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }
