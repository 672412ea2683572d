package eventsource

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// changeJSON is a record of a DynamoDB event ("Using AWS Lambda with Amazon DynamoDB").
type changeJSON struct {
	EventID        string        `json:"eventID"`
	EventName      string        `json:"eventName"`
	EventVersion   string        `json:"eventVersion"`
	EventSource    string        `json:"eventSource"`
	AWSRegion      string        `json:"awsRegion"`
	DynamoDB       streamJSON    `json:"dynamodb"`
	UserIdentity   *identityJSON `json:"userIdentity,omitempty"` // set if Time to Live deleted the item
	EventSourceARN string        `json:"eventSourceARN"`
}

type streamJSON struct {
	Created        int64          `json:"ApproximateCreationDateTime"` // epoch seconds
	Keys           map[string]any `json:"Keys,omitempty"`
	NewImage       map[string]any `json:"NewImage,omitempty"`
	OldImage       map[string]any `json:"OldImage,omitempty"`
	SequenceNumber string         `json:"SequenceNumber"`
	SizeBytes      int64          `json:"SizeBytes"`
	StreamViewType string         `json:"StreamViewType"`
}

type identityJSON struct {
	Type        string `json:"type"`
	PrincipalID string `json:"principalId"`
}

// changeRecord returns the JSON of a stream's record as the function receives it. arn is the ARN
// of the stream, and region the Region of the mapping.
func changeRecord(r types.Record, arn, region string) []byte {
	record := changeJSON{
		EventID:        aws.ToString(r.EventID),
		EventName:      string(r.EventName),
		EventVersion:   aws.ToString(r.EventVersion),
		EventSource:    "aws:dynamodb",
		AWSRegion:      region,
		EventSourceARN: arn,
	}
	if d := r.Dynamodb; d != nil {
		record.DynamoDB = streamJSON{
			Created:        aws.ToTime(d.ApproximateCreationDateTime).Unix(),
			Keys:           itemJSON(d.Keys),
			NewImage:       itemJSON(d.NewImage),
			OldImage:       itemJSON(d.OldImage),
			SequenceNumber: aws.ToString(d.SequenceNumber),
			SizeBytes:      aws.ToInt64(d.SizeBytes),
			StreamViewType: string(d.StreamViewType),
		}
	}
	if who := r.UserIdentity; who != nil {
		record.UserIdentity = &identityJSON{Type: aws.ToString(who.Type), PrincipalID: aws.ToString(who.PrincipalId)}
	}
	return encoded(record)
}

func itemJSON(item map[string]types.AttributeValue) map[string]any {
	out := map[string]any{}
	for name, value := range item {
		out[name] = valueJSON(value)
	}
	return out
}

// valueJSON returns a value in DynamoDB JSON: an object whose only member has the type's name.
// Numbers are strings, and bytes are in base64 once encoded.
func valueJSON(value types.AttributeValue) map[string]any {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": v.Value}
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}
	case *types.AttributeValueMemberNULL:
		return map[string]any{"NULL": v.Value}
	case *types.AttributeValueMemberSS:
		return map[string]any{"SS": v.Value}
	case *types.AttributeValueMemberNS:
		return map[string]any{"NS": v.Value}
	case *types.AttributeValueMemberBS:
		return map[string]any{"BS": v.Value}
	case *types.AttributeValueMemberM:
		return map[string]any{"M": itemJSON(v.Value)}
	case *types.AttributeValueMemberL:
		list := make([]any, len(v.Value)) // [] in JSON, not null
		for i, element := range v.Value {
			list[i] = valueJSON(element)
		}
		return map[string]any{"L": list}
	}
	return map[string]any{} // a type that DynamoDB does not have yet
}

// change is a stream's record that is to be delivered.
type change struct {
	shard    string
	sequence string
	created  time.Time // creation time of the record; see youngest
	arrived  time.Time
	lane     uint64 // hash of the item's key, which selects the lane
	record   []byte // as JSON
}

// youngest returns the latest time at which the record may have been created. DynamoDB rounds the
// creation time down to the second, and DynamoDB Local to the minute. A time at a full minute may
// have been rounded down by up to 59 seconds, but the record was not created after it arrived.
func (c change) youngest() time.Time {
	made := c.created
	if made.Second() == 0 {
		made = made.Add(time.Minute - time.Second)
	}
	if c.arrived.Before(made) {
		return c.arrived
	}
	return made
}
