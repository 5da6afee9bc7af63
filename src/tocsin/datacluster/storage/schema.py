"""The ledger's tables, as a list of scripts: version ``n`` is what the first ``n`` make.

Never change a script that was released; append the next one.
"""

from __future__ import annotations

SCRIPTS = (
    """
    CREATE TABLE counter (name TEXT PRIMARY KEY, value BIGINT NOT NULL);

    CREATE TABLE entry (
        id BIGINT PRIMARY KEY,
        kind TEXT NOT NULL,
        name_key TEXT NOT NULL,
        spec TEXT NOT NULL,
        state TEXT NOT NULL,
        created_at DOUBLE PRECISION NOT NULL,
        UNIQUE (kind, name_key)
    );

    CREATE TABLE channel_progress (
        channel_id BIGINT PRIMARY KEY REFERENCES entry (id),
        started BIGINT NOT NULL DEFAULT 0,
        committed BIGINT NOT NULL DEFAULT 0,
        expired BIGINT NOT NULL DEFAULT 0,
        forgotten BIGINT NOT NULL DEFAULT 0,
        last_backend BIGINT NOT NULL DEFAULT 0,
        subscriptions BIGINT NOT NULL DEFAULT 0,
        backends BIGINT NOT NULL DEFAULT 0
    );

    CREATE TABLE channel_window (
        channel_id BIGINT NOT NULL REFERENCES entry (id),
        dataset_id BIGINT NOT NULL REFERENCES entry (id),
        through BIGINT NOT NULL,
        PRIMARY KEY (channel_id, dataset_id)
    );

    CREATE TABLE backend_subscription (
        channel_id BIGINT NOT NULL REFERENCES entry (id),
        no BIGINT NOT NULL,
        params_key TEXT NOT NULL,
        active SMALLINT NOT NULL,
        holders BIGINT NOT NULL,
        version BIGINT NOT NULL,
        PRIMARY KEY (channel_id, no),
        UNIQUE (channel_id, params_key)
    );
    CREATE INDEX backend_by_version ON backend_subscription (channel_id, version);

    CREATE TABLE subscription (
        id TEXT PRIMARY KEY,
        channel_id BIGINT NOT NULL,
        backend_no BIGINT NOT NULL,
        broker_id BIGINT NOT NULL REFERENCES entry (id),
        owner TEXT NOT NULL,
        since_execution BIGINT NOT NULL,
        created_at DOUBLE PRECISION NOT NULL
    );
    CREATE INDEX subscription_by_backend
        ON subscription (channel_id, backend_no, broker_id, since_execution);
    CREATE INDEX subscription_by_broker ON subscription (broker_id);

    CREATE TABLE execution (
        channel_id BIGINT NOT NULL REFERENCES entry (id),
        no BIGINT NOT NULL,
        state TEXT NOT NULL,
        attempt BIGINT NOT NULL,
        bounds TEXT NOT NULL,
        window_time DOUBLE PRECISION NOT NULL,
        ended_at DOUBLE PRECISION,
        considered BIGINT NOT NULL DEFAULT 0,
        matched BIGINT NOT NULL DEFAULT 0,
        result_rows BIGINT NOT NULL DEFAULT 0,
        size_bytes BIGINT NOT NULL DEFAULT 0,
        duration_s DOUBLE PRECISION NOT NULL DEFAULT 0,
        strategy TEXT NOT NULL DEFAULT '',
        problem TEXT,
        failed_sql TEXT,
        failed_at DOUBLE PRECISION,
        PRIMARY KEY (channel_id, no)
    );

    CREATE TABLE result_file (
        path TEXT PRIMARY KEY,
        channel_id BIGINT NOT NULL REFERENCES entry (id),
        execution_no BIGINT NOT NULL,
        result_rows BIGINT NOT NULL,
        pairs BIGINT NOT NULL,
        size_bytes BIGINT NOT NULL,
        content BLOB
    );
    CREATE INDEX result_file_by_execution ON result_file (channel_id, execution_no);

    CREATE TABLE outbox (
        id BIGINT PRIMARY KEY,
        broker_id BIGINT NOT NULL REFERENCES entry (id),
        channel_id BIGINT NOT NULL REFERENCES entry (id),
        execution_no BIGINT NOT NULL,
        body BLOB NOT NULL,
        due_at DOUBLE PRECISION NOT NULL,
        attempts BIGINT NOT NULL DEFAULT 0,
        problem TEXT
    );
    CREATE INDEX outbox_by_broker ON outbox (broker_id, channel_id, id);
    CREATE INDEX outbox_by_due ON outbox (due_at);

    CREATE TABLE acknowledgement (
        broker_id BIGINT NOT NULL REFERENCES entry (id),
        channel_id BIGINT NOT NULL REFERENCES entry (id),
        position TEXT NOT NULL,
        PRIMARY KEY (broker_id, channel_id)
    );
    """,
    """
    ALTER TABLE channel_progress ADD COLUMN pruned BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE channel_progress ADD COLUMN kept_rows BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE channel_progress ADD COLUMN kept_bytes BIGINT NOT NULL DEFAULT 0;
    UPDATE channel_progress SET
        kept_rows = (SELECT coalesce(sum(e.result_rows), 0) FROM execution e
            WHERE e.channel_id = channel_progress.channel_id AND e.state = 'committed' AND e.result_rows > 0),
        kept_bytes = (SELECT coalesce(sum(e.size_bytes), 0) FROM execution e
            WHERE e.channel_id = channel_progress.channel_id AND e.state = 'committed' AND e.result_rows > 0);
    """,
    """
    CREATE TABLE dataset_progress (
        dataset_id BIGINT PRIMARY KEY REFERENCES entry (id),
        head BIGINT NOT NULL,
        rejected BIGINT NOT NULL
    );
    """,
    """
    ALTER TABLE backend_subscription ADD COLUMN broken_through BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE backend_subscription ADD COLUMN left_after BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE backend_subscription ADD COLUMN held_since BIGINT NOT NULL DEFAULT 0;
    """,
    """
    ALTER TABLE subscription ADD COLUMN making BIGINT NOT NULL DEFAULT 0;
    """,
)
