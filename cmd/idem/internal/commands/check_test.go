package commands

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/localstack/queue"
)

func TestO3_ChecksTheTable(t *testing.T) {
	d := openDesk(t)
	d.idem("check").want(t, exitDone, "All is well")
	var v struct{ Findings []finding }
	d.idem("check", "--table", "no-such-table", "-o", "json").want(t, exitFindings).into(t, &v)
	if len(v.Findings) != 1 || v.Findings[0].Code != "no_table" || v.Findings[0].Warning {
		t.Errorf("of no table it says %+v", v)
	}
	d.idem("check", "--attribute", "expiration=ttl").want(t, exitFindings, "ttl_wrong_attribute")
	d.idem("check", "--queue", "q").want(t, exitUsage, "--function")
}

// functions is Lambda's API, as far as check asks it.
func functions(t *testing.T, timeout string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2015-03-31/functions/{name}/configuration", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"Timeout":` + timeout + `}`))
	})
	mux.HandleFunc("GET /2015-03-31/event-source-mappings", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"EventSourceMappings":[{"EventSourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/t/stream/x"},{"EventSourceArn":"arn:aws:sqs:us-east-1:000000000000:orders"}]}`))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_LAMBDA", server.URL)
}

func TestO3_ComparesVisibilityAndTimeout(t *testing.T) {
	d := openDesk(t)
	service := queue.New(queue.Options{})
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_SQS", server.URL)
	makeQueue(t, server.URL, "orders", "30")
	for _, c := range []struct {
		timeout string
		code    int
		says    string
	}{
		{"5", exitDone, "All is well"},
		{"6", exitDone, "warning visibility_below_advice"},
		{"28", exitDone, "warning visibility_below_advice"},
		{"29", exitFindings, "WRONG visibility_too_short: queue orders has a visibility timeout of 30s, and function pay may run for 29s"},
		{"60", exitFindings, "visibility_too_short"},
	} {
		functions(t, c.timeout)
		d.idem("check", "--function", "pay").want(t, c.code, c.says)
	}
	d.idem("check", "--function", "pay", "--queue", server.URL+"/000000000000/orders").want(t, exitFindings, "visibility_too_short")
	d.idem("check", "--function", "pay", "--queue", server.URL+"/000000000000/none").want(t, exitFailed, "none")
	o := checking{function: "f", maxSkew: 2 * time.Second}
	if f := o.visibility("https://sqs/1/q", 12*time.Second, 10*time.Second); f == nil || !f.Warning {
		t.Errorf("at the least that will do it says %+v", f)
	}
}

// makeQueue makes a queue with a visibility timeout, in seconds.
func makeQueue(t *testing.T, url, name, visibility string) {
	t.Helper()
	client := sqs.NewFromConfig(aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(url), Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")})
	if _, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: map[string]string{"VisibilityTimeout": visibility}}); err != nil {
		t.Fatal(err)
	}
}
