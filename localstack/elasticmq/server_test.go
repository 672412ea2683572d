package elasticmq_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.yaml.in/yaml/v3"

	"github.com/lambdaidem/toolkit/localstack/elasticmq"
	"github.com/lambdaidem/toolkit/localstack/internal/jarserver"
)

func TestStart_HasTheRegionAndAccountAndEndsWithStop(t *testing.T) {
	s, err := elasticmq.Start(t.Context(), func(o *elasticmq.Options) {
		o.Own, o.Region, o.AccountID = true, "eu-west-1", "123456789012"
	})
	if err != nil {
		t.Fatal(err)
	}
	created, err := s.Client().CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("orders")})
	if err != nil {
		t.Fatal(err)
	}
	if want := s.Endpoint() + "/123456789012/orders"; *created.QueueUrl != want {
		t.Errorf("the queue's URL is %s, want %s", *created.QueueUrl, want)
	}
	out, err := s.Client().GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: created.QueueUrl, AttributeNames: []types.QueueAttributeName{"QueueArn"}})
	if err != nil || out.Attributes["QueueArn"] != "arn:aws:sqs:eu-west-1:123456789012:orders" {
		t.Errorf("the attributes are %v, error %v", out, err)
	}

	t.Setenv(elasticmq.EndpointVariable, s.Endpoint()+"/")
	attached, err := elasticmq.Start(t.Context())
	if err != nil || attached.Owned() || attached.Endpoint() != s.Endpoint() || !s.Owned() {
		t.Errorf("at %s: %+v, error %v", elasticmq.EndpointVariable, attached, err)
	} else if err := attached.Stop(); err != nil {
		t.Error(err)
	}
	port, err := strconv.Atoi(s.Endpoint()[strings.LastIndexByte(s.Endpoint(), ':')+1:])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := elasticmq.Start(t.Context(), func(o *elasticmq.Options) { o.Own, o.Port = true, port }); !errors.Is(err, jarserver.ErrPortTaken) {
		t.Errorf("a second server on the port: %v, want %v", err, jarserver.ErrPortTaken)
	}
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	if _, err := elasticmq.Start(t.Context()); err == nil || !strings.Contains(err.Error(), elasticmq.EndpointVariable) {
		t.Errorf("where nothing answers any more: %v, want an error that names the variable", err)
	}
}

func TestVersion_IsThatOfThePOMAndOfCompose(t *testing.T) {
	pom, err := os.ReadFile("pom.xml")
	if err != nil {
		t.Fatal(err)
	}
	if want := "<artifactId>elasticmq-server_2.13</artifactId>\n      <version>" + elasticmq.Version + "</version>"; !strings.Contains(string(pom), want) {
		t.Errorf("pom.xml lacks %q", want)
	}
	text, err := os.ReadFile("../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct{ Image string }
	}
	if err := yaml.Unmarshal(text, &compose); err != nil {
		t.Fatal(err)
	}
	if got, want := compose.Services["sqs"].Image, "softwaremill/elasticmq:"+elasticmq.Version; got != want {
		t.Errorf("compose.yaml runs %q, the launcher %q", got, want)
	}
}
