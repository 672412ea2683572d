package lowlevel

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// These tests compare the package with the SDK: what it writes, and how it reads.

// sdk is a client of the SDK that sends nothing. All its requests get the same response.
type sdk struct {
	status int
	answer string
	sent   string // the body of the last request
}

func (s *sdk) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	s.sent = string(body)
	return &http.Response{
		StatusCode: s.status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(s.answer)), ContentLength: int64(len(s.answer)),
	}, err
}

func (s *sdk) client() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String("http://dynamodb.test"), HTTPClient: s, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", ""),
	})
}

// sdkReadsItem returns the item that the SDK reads from the response to a GetItem.
func sdkReadsItem(body string) (Attributes, error) {
	s := &sdk{status: http.StatusOK, answer: body}
	out, err := s.client().GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String("test"), Key: Attributes{}})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// sdkReadsRefusal returns the error that the SDK reads from the error response to a PutItem.
func sdkReadsRefusal(body string) error {
	s := &sdk{status: http.StatusBadRequest, answer: body}
	_, err := s.client().PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String("test"), Item: Attributes{}})
	return err
}

// same compares attributes. An empty map, list, set or binary value equals a nil one.
var same = cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(
	types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{}, types.AttributeValueMemberBOOL{},
	types.AttributeValueMemberNULL{}, types.AttributeValueMemberM{}, types.AttributeValueMemberL{}, types.AttributeValueMemberSS{},
	types.AttributeValueMemberNS{}, types.AttributeValueMemberBS{},
)}
