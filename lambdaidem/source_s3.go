package lambdaidem

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// S3 guards a handler of Amazon S3 event notifications that S3 sends directly to the function.
// Lambda invokes the function asynchronously, at least once for each notification. For retries and
// waiting, see [Guard.SNS].
//
// The default key is [S3Key] and the default BatchOptions.Operation is the ARN of the bucket. The
// payload, which must be the same under the same key, is the name of the event, the bucket, the
// object's key, its size and its ETag.
//
// S3 delivers notifications in any order. If an older notification of an object must not overwrite
// the effect of a newer one, compare their sequencers; see [SortableSequencer].
//
// S3 encodes the object's key as in a URL: "red flower.jpg" arrives as "red+flower.jpg" in
// S3.Object.Key. The decoded key is in S3.Object.URLDecodedKey.
func (g *Guard) S3(h func(context.Context, events.S3EventRecord) error, optFns ...func(*BatchOptions[events.S3EventRecord])) func(context.Context, events.S3Event) error {
	return wholeEvent(guardMessages(g, source[events.S3Event, events.S3EventRecord]{
		list:           func(e events.S3Event) []events.S3EventRecord { return e.Records },
		convert:        s3Message,
		limitedRetries: true,
	}, h, optFns))
}

func s3Message(_ events.S3Event, r events.S3EventRecord) message {
	object := r.S3.Object
	return message{name: object.Key, source: r.S3.Bucket.Arn, id: S3Key(r),
		parts: []string{r.EventName, r.S3.Bucket.Name, object.Key, strconv.FormatInt(object.Size, 10), object.ETag}, form: []string{"object"}}
}

// S3Key returns an idempotency key for an S3 event notification, or "" if the notification names no
// object. All copies of a notification have the same key. [Guard.S3] uses S3Key by default. For
// notifications that come through SQS or SNS, call S3Key in BatchOptions.Key: the id of the
// message, which is its default key, differs between the copies.
//
// The key is made of the event's name, the bucket, the object's key, the version or else the ETag,
// and the sequencer. Only events that create or delete an object have a sequencer (Amazon S3,
// "Event message structure"). For other events, the key has the id of the request that caused the
// event or, if there is none, the time of the event.
func S3Key(r events.S3EventRecord) string {
	object := r.S3.Object
	if object.Key == "" {
		return ""
	}
	parts := []string{r.EventName, r.S3.Bucket.Name, object.Key, cmp.Or(object.VersionID, object.ETag)}
	switch request := r.ResponseElements["x-amz-request-id"]; {
	case object.Sequencer != "":
		parts = append(parts, "sequencer", object.Sequencer)
	case request != "":
		parts = append(parts, "request", request)
	default:
		parts = append(parts, "time", r.EventTime.UTC().Format(time.RFC3339Nano))
	}
	var buf []byte
	for _, part := range parts {
		buf = appendPart(buf, part)
	}
	sum := sha256.Sum256(buf)
	return "s3_" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// SortableSequencer converts the sequencer of an S3 event notification to a string that can be
// compared. If two notifications are about the same object, the later one has the greater string.
// Compare the strings in Go, by < and >, or in a condition of DynamoDB:
//
//	"attribute_not_exists(sequencer) OR sequencer < :this"
//
// A missing sequencer (an empty string) becomes the empty string, which sorts before all others.
func SortableSequencer(sequencer string) string {
	// Sequencers of different lengths must be padded with zeros on the right (AWS Knowledge Center,
	// "Why do I see duplicate messages in Amazon SQS for the same Amazon S3 event?"), not on the
	// left, as some versions of the S3 User Guide say. Removing these zeros gives the same order.
	return strings.TrimRight(strings.ToUpper(sequencer), "0")
}
