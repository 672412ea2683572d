package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// limit shows how much there is to gain: it sends dynamostore's requests as ready-made text, signed
// by the SDK's signer, with net/http. It checks only whether a response is the expected one, never
// retries, and has no timeout.
type limit struct {
	client   *wire
	url      string
	region   string
	creds    aws.CredentialsProvider
	signer   *v4.Signer
	lock     template
	complete template
}

func newLimit(cfg aws.Config, client *wire) *limit {
	return &limit{client: client, url: aws.ToString(cfg.BaseEndpoint), region: cfg.Region, creds: cfg.Credentials, signer: v4.NewSigner()}
}

// template is a recorded request, divided where values are inserted.
type template struct {
	pieces []string // one more than there are names
	names  []string
}

// templateOf divides a request's JSON at the values of the named attributes. Each name must occur
// once as a string or a number.
func templateOf(body string, names ...string) (template, error) {
	at := make(map[int]string, len(names))
	for _, name := range names {
		for _, kind := range []string{`":{"S":"`, `":{"N":"`} {
			if i := bytes.Index([]byte(body), []byte(`"`+name+kind)); i >= 0 {
				at[i+len(`"`+name+kind)] = name
			}
		}
	}
	if len(at) != len(names) {
		return template{}, fmt.Errorf("a recorded request lacks one of %q: %s", names, body)
	}
	var t template
	rest := 0
	for i := 0; i < len(body); i++ {
		name, here := at[i]
		if !here {
			continue
		}
		t.pieces, t.names = append(t.pieces, body[rest:i]), append(t.names, name)
		for body[i] != '"' {
			i++
		}
		rest = i
	}
	t.pieces = append(t.pieces, body[rest:])
	return t, nil
}

func (t *template) with(values map[string]string) []byte {
	b := make([]byte, 0, 2<<10)
	for i, name := range t.names {
		b = append(append(b, t.pieces[i]...), values[name]...)
	}
	return append(b, t.pieces[len(t.names)]...)
}

// send sends one request, and returns the status and the body of the response.
func (l *limit) send(ctx context.Context, operation string, body []byte) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	creds, err := l.creds.Retrieve(ctx)
	if err != nil {
		return 0, nil, err
	}
	sum := sha256.Sum256(body)
	if err := l.signer.SignHTTP(ctx, creds, r, hex.EncodeToString(sum[:]), "dynamodb", l.region, time.Now()); err != nil {
		return 0, nil, err
	}
	resp, err := l.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, errors.Join(err, resp.Body.Close())
}

func (l *limit) put(ctx context.Context, id, token string, leaseEnd time.Time) (int, []byte, error) {
	now := time.Now()
	return l.send(ctx, "PutItem", l.lock.with(map[string]string{
		"id": id, "token": token, "started_at": epochMillis(now), "in_progress_expiration": epochMillis(leaseEnd),
		"expiration": epochSeconds(now.Add(24 * time.Hour)), ":now_s": epochSeconds(now), ":now_ms": epochMillis(now),
	}))
}

// first sends a new request: the lock and the completion.
func (l *limit) first(ctx context.Context, id, token string, leaseEnd time.Time) error {
	status, answer, err := l.put(ctx, id, token, leaseEnd)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the lock was answered %d: %s", status, answer)
	}
	if err != nil {
		return err
	}
	now := time.Now()
	status, answer, err = l.send(ctx, "UpdateItem", l.complete.with(map[string]string{
		"id": id, ":token": token, ":completed_at": epochMillis(now), ":expiration": epochSeconds(now.Add(24 * time.Hour)),
		":now_s": epochSeconds(now), ":now_ms": epochMillis(now),
	}))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the completion was answered %d: %s", status, answer)
	}
	return err
}

// again sends a request whose record already has the given status. It returns an error if the
// record is not as expected.
func (l *limit) again(ctx context.Context, id, token string, leaseEnd time.Time, status string) error {
	code, answer, err := l.put(ctx, id, token, leaseEnd)
	if err == nil && (code != http.StatusBadRequest || !bytes.Contains(answer, []byte(`"status":{"S":"`+status+`"}`)) || !json.Valid(answer)) {
		err = fmt.Errorf("the lock was answered %d: %s; want it refused, and the record %s", code, answer, status)
	}
	return err
}

func epochMillis(t time.Time) string  { return strconv.FormatInt(t.UnixMilli(), 10) }
func epochSeconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
