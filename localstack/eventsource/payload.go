package eventsource

// payload returns the event that contains the given records, each in JSON.
func payload(records [][]byte) []byte {
	event := []byte(`{"Records":[`)
	for i, r := range records {
		if i > 0 {
			event = append(event, ',')
		}
		event = append(event, r...)
	}
	return append(event, `]}`...)
}

// fitting returns how many of the records, from the first on, fit into one event. It returns at
// least 1: if one record alone is too large, the Invoke API must refuse it.
func fitting(records [][]byte) int {
	size := len(payload(nil))
	for i, r := range records {
		if size += len(r) + 1; size-1 > maxPayload && i > 0 {
			return i
		}
	}
	return len(records)
}

// maxPayload is the maximum size in bytes of an event ("Lambda quotas": 6 MB).
const maxPayload = 6 << 20
