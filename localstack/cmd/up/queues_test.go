package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/elasticmq"
	"github.com/lambdaidem/toolkit/localstack/stack"
)

// probeTemplate writes a template with the emulator's test function in it, which
// may take 100 s, and with other resources, if there are any.
func probeTemplate(t *testing.T, events, resources string) (path string) {
	t.Helper()
	probe, err := filepath.Abs("../../emulator/testdata/probe")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "template.yaml")
	text := "Resources:\n  Probe:\n    Type: AWS::Serverless::Function\n    Properties:\n" +
		"      Runtime: provided.al2023\n      Timeout: 100\n      CodeUri: " + probe + "\n" + events + resources
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// guideOf starts up in this process, and returns its guide.
func guideOf(t *testing.T, template string) string {
	t.Helper()
	t.Setenv(ddblocal.EndpointVariable, ddblocal.ForTest(t).Endpoint())
	t.Setenv("PORT", fmt.Sprint(freePort(t)))
	ctx, stop := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, writer, stack.Options{Template: template}, quiet())
		ended <- err
		_ = writer.CloseWithError(err)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run = %v; want a clean end", err)
		}
	})
	return readGuide(t, bufio.NewScanner(reader))
}

// sendAsShown runs the guide's line for a message, with a command in the AWS CLI's
// place that notes what it was called with, and then sends it so.
func sendAsShown(t *testing.T, guide string) (client *sqs.Client, queueURL string) {
	t.Helper()
	var line string
	for paragraph := range strings.SplitSeq(guide, "\n\n") {
		if strings.Contains(paragraph, "aws sqs send-message") {
			line = paragraph
		}
	}
	bin := t.TempDir()
	const tool = "#!/bin/sh\n: \"${AWS_DEFAULT_REGION:?}\" \"${AWS_ACCESS_KEY_ID:?}\" \"${AWS_SECRET_ACCESS_KEY:?}\"\nfor a; do printf '%s\\n' \"$a\"; done\n"
	if err := os.WriteFile(filepath.Join(bin, "aws"), []byte(tool), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	words := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(words) < 2 || words[0] != "sqs" || words[1] != "send-message" {
		t.Fatalf("the guide has no line that sends a message:\n%s", guide)
	}
	flags := map[string]*string{}
	for i := 2; i+1 < len(words); i += 2 {
		flags[words[i]] = &words[i+1]
	}
	client = sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: flags["--endpoint-url"], Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: flags["--queue-url"], MessageBody: flags["--message-body"],
		MessageGroupId: flags["--message-group-id"], MessageDeduplicationId: flags["--message-deduplication-id"],
	}); err != nil {
		t.Errorf("a message as the guide shows it: %v\n%s", err, line)
	}
	return client, aws.ToString(flags["--queue-url"])
}

// The line is for a queue that somebody reads, whichever comes first.
func TestGuideShowsTheQueues(t *testing.T) {
	for name, fifo := range map[string]string{"standard": "", "FIFO": "    Properties: {FifoQueue: true}\n"} {
		t.Run(name, func(t *testing.T) {
			guide := guideOf(t, probeTemplate(t,
				"      Events:\n        Order: {Type: SQS, Properties: {Queue: !GetAtt Orders.Arn}}\n",
				"  Dead:\n    Type: AWS::SQS::Queue\n  Orders:\n    Type: AWS::SQS::Queue\n"+fifo+"  Visible:\n    Type: AWS::SQS::Queue\n"))
			if fifo == "" && !regexp.MustCompile(`(?m)^SQS is at http://127\.0\.0\.1:\d+, with the queues:$`).MatchString(guide) {
				t.Errorf("the guide names no SQS:\n%s", guide)
			}
			for _, queue := range []string{"Dead", "Orders", "Visible"} {
				if !regexp.MustCompile(`(?m)^  ` + queue + ` +http://127\.0\.0\.1:\d+/\d+/` + queue).MatchString(guide) {
					t.Errorf("the guide does not name the queue %s:\n%s", queue, guide)
				}
			}
			if _, url := sendAsShown(t, guide); !strings.Contains(url, "/Orders") {
				t.Errorf("the line sends to %s, want Orders, which a function reads", url)
			}
		})
	}
}

// The queues have names of their own in somebody else's SQS, so the guide asks there.
func TestGuideShowsTheQueuesOfAnotherSQS(t *testing.T) {
	other := elasticmq.ForTest(t)
	t.Setenv(elasticmq.EndpointVariable, other.Endpoint())
	guide := guideOf(t, probeTemplate(t,
		"      Events:\n        Order: {Type: SQS, Properties: {Queue: !GetAtt Orders.Arn}}\n",
		"  Dead:\n    Type: AWS::SQS::Queue\n  Orders:\n    Type: AWS::SQS::Queue\n"))
	if !strings.Contains(guide, "\nSQS is at "+other.Endpoint()+", with the queues:\n") {
		t.Errorf("the guide does not name %s:\n%s", other.Endpoint(), guide)
	}
	if _, url := sendAsShown(t, guide); !regexp.MustCompile(`/local-\w+-Orders$`).MatchString(url) {
		t.Errorf("the line sends to %s, want Orders under its name there", url)
	}
}

func TestGuideWithoutQueuesIsSilentOfThem(t *testing.T) {
	if guide := guideOf(t, probeTemplate(t, "", "")); strings.Contains(guide, "SQS") || strings.Contains(guide, "sqs") {
		t.Errorf("the template has no queues, and the guide says:\n%s", guide)
	}
}

// The message of this project's own stack is one that its function takes: a message
// that is deleted was handled.
func TestGuideSendsANotification(t *testing.T) {
	client, url := sendAsShown(t, guideOf(t, ""))
	if !strings.Contains(url, "/NotificationsQueue") {
		t.Errorf("it sends to %s, want NotificationsQueue", url)
	}
	const waiting, taken = types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		out, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
			QueueUrl: &url, AttributeNames: []types.QueueAttributeName{waiting, taken},
		})
		if err != nil {
			t.Fatal(err)
		}
		left := out.Attributes[string(waiting)] + " and " + out.Attributes[string(taken)]
		if left == "0 and 0" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waiting and taken messages are %s after 10 s, want none", left)
		}
	}
}
