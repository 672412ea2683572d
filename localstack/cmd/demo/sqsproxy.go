package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// sends counts, for each payment, the messages that the queue accepted.
type sends struct {
	mu   sync.Mutex
	of   map[string]sent // counts by payment
	ids  map[string]bool // IDs of the messages
	more error           // an invalid message, or a failure of the proxy
}

type sent struct {
	messages, duplicates int
	key                  string
}

func newSends() *sends { return &sends{of: map[string]sent{}, ids: map[string]bool{}} }

// between starts a proxy that observes what the functions send to SQS, and returns its endpoint.
// It is used as [stack.Options].QueueEndpoint. The proxy ends with the process.
func (s *sends) between(endpoint string) string {
	target, err := url.Parse(endpoint)
	if err != nil {
		panic(err) // can't happen: the stack has used this URL
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.failed(err)
		return endpoint
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if r.In.Header.Get("X-Amz-Target") != "AmazonSQS.SendMessage" {
				return
			}
			body, err := io.ReadAll(r.In.Body)
			if err != nil {
				s.failed(err)
			}
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
			// A message counts even if its sender is killed before it receives the reply.
			r.Out = r.Out.WithContext(context.WithValue(context.WithoutCancel(r.Out.Context()), messageKey{}, body))
		},
		ModifyResponse: func(resp *http.Response) error {
			if message, ok := resp.Request.Context().Value(messageKey{}).([]byte); ok && resp.StatusCode == http.StatusOK {
				return s.accepted(message, resp)
			}
			return nil
		},
		ErrorLog: log.New(io.Discard, "", 0), // killed functions close their connections, which would be logged
	}}
	go func() { s.failed(server.Serve(listener)) }()
	return "http://" + listener.Addr().String()
}

// messageKey is the context key under which a request carries the message that it sends.
type messageKey struct{}

func (s *sends) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.more = err
}

// accepted counts a message that the queue has accepted. For a duplicate, SQS returns the message
// ID of the first message.
func (s *sends) accepted(message []byte, resp *http.Response) error {
	answer, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	if err != nil {
		return fmt.Errorf("reading the answer of SQS: %w", err)
	}
	var m struct {
		QueueUrl, MessageBody, MessageDeduplicationId string //nolint:revive,staticcheck // the names of SQS
		MessageAttributes                             map[string]struct{ StringValue string }
	}
	var id struct{ MessageId string } //nolint:revive,staticcheck // the name of SQS
	if err := errors.Join(json.Unmarshal(message, &m), json.Unmarshal(answer, &id)); err != nil {
		return fmt.Errorf("reading a message to SQS and its answer: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	duplicate := s.ids[id.MessageId]
	s.ids[id.MessageId] = true
	var n struct{ Payment string }
	if err := json.Unmarshal([]byte(m.MessageBody), &n); err != nil || n.Payment == "" {
		s.more = fmt.Errorf("the queue %s got %q, which is no notification", m.QueueUrl, m.MessageBody)
		return nil
	}
	now, key := s.of[n.Payment], m.MessageAttributes[lambdaidem.MessageKey].StringValue
	switch {
	case key == "" || key != m.MessageDeduplicationId:
		s.more = fmt.Errorf("a message about payment %s has the key %q, and the deduplication id %q; want the same, and some", n.Payment, key, m.MessageDeduplicationId)
	case now.key != "" && now.key != key:
		s.more = fmt.Errorf("the messages about payment %s have two keys: %q, %q", n.Payment, now.key, key)
	}
	now.key = key
	now.messages++
	if duplicate {
		now.duplicates++
	}
	s.of[n.Payment] = now
	return nil
}

func (s *sends) about(payment string) sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[payment]
}

func (s *sends) wrong() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.more
}
