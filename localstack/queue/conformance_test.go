package queue_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/lambdaidem/toolkit/localstack/queue"
)

// endpointVariable is the endpoint of another SQS, to which the table is put as
// well: moto's server, say.
const endpointVariable = "SQS_CROSSCHECK_ENDPOINT"

// script is a case of the table: what a client does, and what it sees of it.
type script struct {
	*testing.T
	*sqs.Client
	prefix string // of the names of its queues, so that scripts don't meet
	seen   []string
}

// see notes an outcome.
func (s *script) see(format string, args ...any) {
	line := strings.ReplaceAll(fmt.Sprintf(format, args...), s.prefix, "")
	s.seen = append(s.seen, line)
}

// fails notes an error's code, status and type in the SDK.
func (s *script) fails(what string, err error) {
	s.Helper()
	line := what + ": " + refusal(err)
	var api smithy.APIError
	if errors.As(err, &api) {
		if typed := fmt.Sprintf("%T", api); typed != "*smithy.GenericAPIError" {
			line += " " + strings.TrimPrefix(typed, "*types.")
		}
	}
	s.see("%s", line)
}

func (s *script) queue(name string, attributes map[string]string) *string {
	s.Helper()
	out, err := s.CreateQueue(s.Context(), &sqs.CreateQueueInput{QueueName: aws.String(s.prefix + name), Attributes: attributes})
	if err != nil {
		s.Fatal(err)
	}
	return out.QueueUrl
}

func (s *script) fifo(name string) *string {
	s.Helper()
	return s.queue(name+".fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
}

func (s *script) arn(url *string) string {
	s.Helper()
	return s.attributes(url, "QueueArn")["QueueArn"]
}

func (s *script) attributes(url *string, names ...types.QueueAttributeName) map[string]string {
	s.Helper()
	out, err := s.GetQueueAttributes(s.Context(), &sqs.GetQueueAttributesInput{QueueUrl: url, AttributeNames: names})
	if err != nil {
		s.Fatal(err)
	}
	return out.Attributes
}

func (s *script) send(url *string, group string, bodies ...string) []*sqs.SendMessageOutput {
	s.Helper()
	var all []*sqs.SendMessageOutput
	for _, body := range bodies {
		in := &sqs.SendMessageInput{QueueUrl: url, MessageBody: aws.String(body)}
		if group != "" {
			in.MessageGroupId = aws.String(group)
		}
		out, err := s.SendMessage(s.Context(), in)
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, out)
	}
	return all
}

func (s *script) receive(url *string, most int32) []types.Message {
	s.Helper()
	out, err := s.ReceiveMessage(s.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: url, MaxNumberOfMessages: most,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}, MessageAttributeNames: []string{"All"},
	})
	if err != nil {
		s.Fatal(err)
	}
	return out.Messages
}

func texts(messages []types.Message) string {
	var all []string
	for _, m := range messages {
		all = append(all, aws.ToString(m.Body))
	}
	return strings.Join(all, " ")
}

// pass lets time go by: none in a bubble, and real time elsewhere.
func (s *script) pass(d time.Duration) { time.Sleep(d) }

// conformance is what the SDK's client must see, by the AWS documentation that
// rule names.
type conformance struct {
	name string
	rule string
	do   func(s *script)
	want []string
}

func TestSDK_Conformance(t *testing.T) {
	for _, c := range slices.Concat(queueCases, messageCases, fifoCases) {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, queue.Options{}, func(t *testing.T, _ *queue.Service, client *sqs.Client) {
				s := &script{T: t, Client: client, prefix: "prefix0-"}
				c.do(s)
				compare(t, s.seen, c.want, c.rule)
			})
		})
	}
}

// TestSDK_CrossCheck puts the same table to another SQS and holds it to what is
// known of that one.
func TestSDK_CrossCheck(t *testing.T) {
	endpoint := os.Getenv(endpointVariable)
	if endpoint == "" {
		t.Skip(endpointVariable + " is not set: it is the endpoint of another SQS, such as moto's server")
	}
	transport := &http.Client{Transport: &http.Transport{}}
	defer transport.CloseIdleConnections()
	client := newClient(endpoint, transport)
	run := fmt.Sprintf("%x-", time.Now().UnixNano())
	for i, c := range slices.Concat(queueCases, messageCases, fifoCases) {
		t.Run(c.name, func(t *testing.T) {
			s := &script{T: t, Client: client, prefix: fmt.Sprintf("%s%d-", run, i)}
			c.do(s)
			var want []string
			for i, line := range c.want {
				if other, differs := motoAnswers[c.name][i]; differs {
					line = other
				}
				if line != "" {
					want = append(want, line)
				}
			}
			compare(t, s.seen, want, c.rule)
		})
	}
}

func compare(t *testing.T, got, want []string, rule string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	t.Errorf("%s\ngot:", rule)
	for _, line := range got {
		t.Logf("\t%q,", line)
	}
	t.Log("want:")
	for _, line := range want {
		t.Logf("\t%q,", line)
	}
}
