package memdynamo

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// targetPrefix comes before the operation's name in the X-Amz-Target header.
const targetPrefix = "DynamoDB_20120810."

// Client answers the SDK's HTTP requests from a DB. It implements aws.HTTPClient, for
// dynamodb.Options.HTTPClient.
type Client struct {
	DB *DB
}

// Do serves the request. It returns the error of the request's context, or an error if the
// request is not one to DynamoDB or its body can't be read.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	op, body, err := Request(req)
	if err != nil {
		return nil, err
	}
	status, header, out := c.DB.Serve(op, body)
	return Response(req, status, header, out), nil
}

// Request returns the name of the operation and the body of a request to DynamoDB. It closes the
// body.
func Request(req *http.Request) (op string, body []byte, err error) {
	op, ok := strings.CutPrefix(req.Header.Get("X-Amz-Target"), targetPrefix)
	if !ok {
		return "", nil, fmt.Errorf("memdynamo: X-Amz-Target is %q: not a request to DynamoDB", req.Header.Get("X-Amz-Target"))
	}
	if req.Body == nil {
		return op, nil, nil
	}
	body, err = io.ReadAll(req.Body)
	if cerr := req.Body.Close(); err == nil {
		err = cerr
	}
	return op, body, err
}

// Response returns the results of Serve or Error as an HTTP response to req.
func Response(req *http.Request, status int, header http.Header, body []byte) *http.Response {
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", status, http.StatusText(status)),
		StatusCode: status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        header,
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       req,
	}
}
