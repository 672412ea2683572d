package queue

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The attributes that the queue itself reads.
const (
	attrVisibility   = "VisibilityTimeout"
	attrRetention    = "MessageRetentionPeriod"
	attrDelay        = "DelaySeconds"
	attrWait         = "ReceiveMessageWaitTimeSeconds"
	attrMaxSize      = "MaximumMessageSize"
	attrRedrive      = "RedrivePolicy"
	attrFifoQueue    = "FifoQueue"
	attrContentDedup = "ContentBasedDeduplication"
	attrDedupScope   = "DeduplicationScope"
	attrThroughput   = "FifoThroughputLimit"
)

// kept are the attributes that are stored and returned and do nothing here.
var kept = []string{
	"Policy", "RedriveAllowPolicy", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled",
}

// ranges are the bounds of the numbers ("SetQueueAttributes").
var ranges = map[string][2]int{
	attrVisibility: {0, 43_200},
	attrRetention:  {60, 1_209_600},
	attrDelay:      {0, 900},
	attrWait:       {0, 20},
	attrMaxSize:    {1024, maxMessageBytes},
}

// choices are the attributes of FIFO queues, and what they can be.
var choices = map[string][]string{
	attrFifoQueue:    {"true"},
	attrContentDedup: {"true", "false"},
	attrDedupScope:   {"queue", "messageGroup"},
	attrThroughput:   {"perQueue", "perMessageGroupId"},
}

// settings are a queue's attributes. They are never changed, only replaced.
type settings struct {
	values  map[string]string
	fifo    bool
	redrive *redrivePolicy
}

// defaults are those of CreateQueue.
func defaults(fifo bool) settings {
	s := settings{fifo: fifo, values: map[string]string{
		attrVisibility:         "30",
		attrRetention:          "345600",
		attrDelay:              "0",
		attrWait:               "0",
		attrMaxSize:            strconv.Itoa(maxMessageBytes),
		"SqsManagedSseEnabled": "true",
	}}
	if fifo {
		s.values[attrFifoQueue] = "true"
		s.values[attrContentDedup] = "false"
		s.values[attrDedupScope] = "queue"
		s.values[attrThroughput] = "perQueue"
	}
	return s
}

func (s settings) number(name string) int {
	n, _ := strconv.Atoi(s.values[name]) // apply has checked it
	return n
}

func (s settings) seconds(name string) time.Duration {
	return time.Duration(s.number(name)) * time.Second
}

// differsFrom names an attribute among the given ones whose value is another
// here than there. What is not given is no difference: that is how AWS answers,
// though CreateQueue's documentation asks for "all its attributes".
func (s settings) differsFrom(other settings, given map[string]string) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if s.values[name] != other.values[name] {
			return name, true
		}
	}
	return "", false
}

// apply returns settings with the given attributes changed, or why they can't
// be. It changes nothing.
func (s *Service) apply(old settings, given map[string]string, creating bool) (settings, error) {
	changed := old
	changed.values = maps.Clone(old.values)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		bounds, isNumber := ranges[name]
		choice, isFIFO := choices[name]
		switch {
		case isNumber:
			n, err := strconv.Atoi(value)
			if err != nil || n < bounds[0] || n > bounds[1] {
				return old, invalidAttributeValue.error("Invalid value for the parameter %s.", name)
			}
			changed.values[name] = strconv.Itoa(n)
		case name == attrFifoQueue && !old.fifo && creating && value == "false":
			// It says what is so anyway.
		case isFIFO && !old.fifo:
			return old, invalidAttributeName.error("Unknown Attribute %s.", name)
		case name == attrFifoQueue && value != "true":
			return old, invalidAttributeValue.error("Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.")
		case isFIFO:
			if !slices.Contains(choice, value) {
				return old, invalidAttributeValue.error("Invalid value for the parameter %s.", name)
			}
			changed.values[name] = value
		case name == attrRedrive:
			policy, err := s.parseRedrive(value, old.fifo)
			if err != nil {
				return old, err
			}
			changed.redrive = policy
			changed.set(name, policy.String())
		case slices.Contains(kept, name):
			changed.set(name, value)
		default:
			return old, invalidAttributeName.error("Unknown Attribute %s.", name)
		}
	}
	if changed.values[attrThroughput] == "perMessageGroupId" && changed.values[attrDedupScope] != "messageGroup" {
		return old, invalidAttributeValue.error("Invalid value for the parameter FifoThroughputLimit. Reason: perMessageGroupId needs DeduplicationScope messageGroup.")
	}
	return changed, nil
}

// set stores a value; an empty one takes the attribute away.
func (s settings) set(name, value string) {
	if value == "" {
		delete(s.values, name)
		return
	}
	s.values[name] = value
}

// redrivePolicy is the attribute RedrivePolicy. A nil one is none.
type redrivePolicy struct {
	Target string `json:"deadLetterTargetArn"`
	// MaxReceives is how often a message is delivered before it is moved.
	MaxReceives int `json:"maxReceiveCount"`
}

func (p *redrivePolicy) String() string {
	if p == nil {
		return ""
	}
	b, err := json.Marshal(p)
	if err != nil { // a string and a number always marshal
		panic(err)
	}
	return string(b)
}

// parseRedrive reads a RedrivePolicy ("Using dead-letter queues in Amazon
// SQS"): the target exists, in this account and Region, and is of the same type.
func (s *Service) parseRedrive(value string, fifo bool) (*redrivePolicy, error) {
	if value == "" {
		return nil, nil
	}
	refuse := func(reason string) (*redrivePolicy, error) {
		return nil, badValue(value, attrRedrive, reason)
	}
	var raw struct {
		Target      string          `json:"deadLetterTargetArn"`
		MaxReceives json.RawMessage `json:"maxReceiveCount"`
	}
	if json.Unmarshal([]byte(value), &raw) != nil {
		return refuse("Redrive policy is not a valid JSON map.")
	}
	policy := &redrivePolicy{Target: raw.Target, MaxReceives: 10}
	if len(raw.MaxReceives) > 0 {
		// CloudFormation and the console send a number, many people a string.
		n, err := strconv.Atoi(strings.Trim(string(raw.MaxReceives), `"`))
		if err != nil || n < 1 || n > 1000 {
			return refuse("Invalid value for maxReceiveCount. It must be from 1 to 1000.")
		}
		policy.MaxReceives = n
	}
	if raw.Target == "" {
		return refuse("Redrive policy does not contain mandatory attribute: deadLetterTargetArn.")
	}
	if !strings.HasPrefix(raw.Target, "arn:aws:sqs:") {
		return refuse("Invalid value for deadLetterTargetArn.")
	}
	target := s.byARN(raw.Target)
	if target == nil {
		return refuse("Dead letter target does not exist.")
	}
	if target.fifo != fifo {
		return refuse("Dead-letter queue must be same type of queue as the source.")
	}
	return policy, nil
}
