package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is a Service that listens.
type Server struct {
	*Service
	url     string
	http    *http.Server
	serving sync.WaitGroup
	unwatch func() bool

	once     sync.Once
	closeErr error
}

// Start listens on a loopback address, since it verifies no signatures. The
// server ends by Close, or when ctx ends.
func Start(ctx context.Context, options Options) (*Server, error) {
	address := cmp.Or(options.Addr, "127.0.0.1:0")
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("queue: the address %q is not host:port: %w", address, err)
	}
	if !addr.IP.IsLoopback() {
		return nil, fmt.Errorf("queue: refusing to listen on %q: it verifies no signatures, "+
			"so it listens on a loopback address only, such as 127.0.0.1:9324", address)
	}
	listener, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("queue: listening on %s: %w; is another one running there?", addr, err)
	}
	url := "http://" + listener.Addr().String()
	options.BaseURL = cmp.Or(options.BaseURL, url)
	s := &Server{Service: New(options), url: url}
	s.http = &http.Server{Handler: s.Service, ReadHeaderTimeout: time.Minute}
	s.serving.Go(func() { _ = s.http.Serve(listener) }) // ends by Shutdown
	s.unwatch = context.AfterFunc(ctx, func() { _ = s.Close() })
	return s, nil
}

// URL is the endpoint for AWS_ENDPOINT_URL_SQS, such as http://127.0.0.1:9324.
func (s *Server) URL() string { return s.url }

// writeAnswers bounds how long Close waits for clients to take their answers.
const writeAnswers = 2 * time.Second

// Close ends waiting receives, which get 503, and the listener. When it returns,
// nothing of the server runs. It may be called again.
func (s *Server) Close() error {
	s.once.Do(func() {
		s.unwatch()
		_ = s.Service.Close() // never fails
		ctx, cancel := context.WithTimeout(context.Background(), writeAnswers)
		defer cancel()
		if err := s.http.Shutdown(ctx); err != nil {
			s.closeErr = errors.Join(err, s.http.Close())
		}
		s.serving.Wait()
	})
	return s.closeErr
}
