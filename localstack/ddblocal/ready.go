package ddblocal

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// answersFor reports whether the server at the endpoint is the one that was started with this origin. Another server may
// have taken the port. Without this check, a test could run on that server's tables.
func (s *Server) answersFor(ctx context.Context, endpoint, origin string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
	if err != nil {
		return false
	}
	req.Header.Set("Origin", origin)
	resp, err := s.http.Do(req)
	if err != nil {
		return false
	}
	_, readErr := io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	return errors.Join(readErr, resp.Body.Close()) == nil && resp.Header.Get("Access-Control-Allow-Origin") == origin
}

// listTables sends the cheapest request that needs the database itself, not only the HTTP server.
func (s *Server) listTables(ctx context.Context, endpoint string) error {
	_, err := s.Client().ListTables(ctx, &dynamodb.ListTablesInput{Limit: aws.Int32(1)}, func(o *dynamodb.Options) {
		o.BaseEndpoint, o.RetryMaxAttempts = &endpoint, 1
	})
	return err
}
