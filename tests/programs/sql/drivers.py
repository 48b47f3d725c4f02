"""Drivers of PostgreSQL for Python on the SQL endpoint: psycopg, asyncpg, SQLAlchemy and Alembic.

Called with the endpoint's port. Tables and shards are those of crates/fronts/sql/tests/endpoint/fixture.rs.
"""

import asyncio
import sys

import asyncpg
import psycopg
import sqlalchemy as sa
from sqlalchemy import orm

PORT = int(sys.argv[1])
DSN = f"host=127.0.0.1 port={PORT} user=ada password=secret dbname=shop"


def with_psycopg():
    with psycopg.connect(DSN) as connection:
        connection.execute("INSERT INTO orders (tenant, id, amount, note) VALUES (%s, %s, %s, %s)", (1, 1, 10, "eins"))
        connection.commit()
        # The same text often enough is prepared by the driver, and goes to several shards all the same.
        for turn in range(8):
            for tenant in (1, 150, 250):
                row = connection.execute("SELECT count(*) FROM orders WHERE tenant = %s", (tenant,)).fetchone()
                assert row == ((1,) if tenant == 1 else (0,)), (turn, tenant, row)
                connection.commit()
        with connection.transaction():
            connection.execute("UPDATE orders SET amount = amount + 1 WHERE tenant = 1 AND id = 1")
            try:
                with connection.transaction():
                    connection.execute("INSERT INTO orders (tenant, id) VALUES (1, 1)")
            except psycopg.errors.UniqueViolation:
                pass
        assert connection.execute("SELECT amount FROM orders WHERE tenant = 1").fetchone() == (11,)
        connection.rollback()
        connection.autocommit = True
        connection.execute("SET lazuli.transaction = 'two-phase'")
        with connection.cursor().copy("COPY orders (tenant, id, amount) FROM STDIN") as copy:
            for number in range(300):
                copy.write_row((number, 2, number))
        assert connection.execute("SELECT count(*), sum(amount) FROM orders WHERE id = 2").fetchone() == (300, 44850)
        rows = connection.execute("SELECT tenant FROM orders WHERE id = 2 ORDER BY tenant DESC LIMIT 3").fetchall()
        assert rows == [(299,), (298,), (297,)], rows
        rows = connection.execute("SELECT id FROM orders WHERE tenant = ANY (%s) ORDER BY 1", ([1, 150, 250],)).fetchall()
        assert len(rows) == 4, rows
        with connection.cursor(binary=True) as cursor:
            average = cursor.execute("SELECT avg(amount) FROM orders WHERE id = 2").fetchone()[0]
            assert float(average) == 149.5, average
        try:
            connection.execute("CREATE TABLE x (a int)")
            raise AssertionError("CREATE TABLE was run")
        except psycopg.errors.FeatureNotSupported as error:
            assert "lazuli sql ddl" in error.diag.message_hint
        with connection.pipeline():
            for number in range(5):
                connection.execute("UPDATE orders SET amount = %s WHERE tenant = 150 AND id = 2", (number,))
        assert connection.execute("SELECT amount FROM orders WHERE tenant = 150 AND id = 2").fetchone() == (4,)


async def with_asyncpg():
    pool = await asyncpg.create_pool(
        host="127.0.0.1", port=PORT, user="ada", password="secret", database="shop", min_size=2, max_size=4
    )
    async with pool.acquire() as connection:
        for tenant in (1, 150, 250):
            assert await connection.fetchval("SELECT count(*) FROM orders WHERE tenant = $1 AND id = 2", tenant) == 1
        statement = await connection.prepare("SELECT amount, note FROM orders WHERE tenant = $1 AND id = $2")
        for tenant in (1, 150, 250, 1):
            row = await statement.fetchrow(tenant, 2)
            assert row["note"] is None
        async with connection.transaction():
            await connection.execute("INSERT INTO orders (tenant, id, amount) VALUES (150, 3, 7)")
            got = [row["id"] async for row in connection.cursor("SELECT id FROM orders WHERE tenant = 150 ORDER BY id")]
            assert got == [2, 3], got
        rows = await connection.fetch("SELECT id FROM orders ORDER BY tenant, id LIMIT $1", 4)
        assert len(rows) == 4
        assert await connection.fetchval("SELECT sum(amount) FROM orders WHERE id = $1", 3) == 7
        many = await connection.fetch("SELECT tenant FROM orders WHERE tenant = ANY($1::int[]) AND id = 2", [5, 150, 280])
        assert sorted(row["tenant"] for row in many) == [5, 150, 280]
        await connection.executemany(
            "INSERT INTO items (tenant, order_id, sku, qty) VALUES ($1, $2, $3, $4)", [(7, 1, f"s{n}", n) for n in range(20)]
        )
        assert await connection.fetchval("SELECT count(*) FROM items WHERE tenant = 7") == 20
        try:
            await connection.copy_records_to_table("items", records=[(7, 2, "a", 1)], columns=["tenant", "order_id", "sku", "qty"])
            raise AssertionError("a COPY in binary form was taken")
        except asyncpg.FeatureNotSupportedError as error:
            assert "text or csv" in error.hint
    await pool.close()


def with_sqlalchemy():
    url = f"postgresql+psycopg://ada:secret@127.0.0.1:{PORT}/shop"
    engine = sa.create_engine(url)

    class Base(orm.DeclarativeBase):
        pass

    class Order(Base):
        __tablename__ = "orders"
        tenant: orm.Mapped[int] = orm.mapped_column(primary_key=True)
        id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
        amount: orm.Mapped[int | None]
        note: orm.Mapped[str | None]

    with orm.Session(engine) as session:
        session.add_all([Order(tenant=260, id=number, amount=number, note="orm") for number in range(10, 20)])
        session.commit()
        found = session.get(Order, (260, 12))
        found.amount = 99
        session.commit()
        total = session.scalar(sa.select(sa.func.sum(Order.amount)).where(Order.tenant == 260, Order.note == "orm"))
        assert total == sum(range(10, 20)) - 12 + 99, total
        everywhere = session.execute(
            sa.select(Order.note, sa.func.count()).group_by(Order.note).order_by(Order.note.desc().nulls_last())
        ).all()
        assert everywhere[0] == ("orm", 10), everywhere
        session.delete(found)
        session.commit()
        session.add(Order(tenant=1, id=777))
        session.add(Order(tenant=250, id=777))
        try:
            session.commit()
            raise AssertionError("one transaction has written on two shards")
        except sa.exc.NotSupportedError as error:
            assert "two-phase" in str(error.orig.diag.message_hint)
        session.rollback()
    names = sa.inspect(engine).get_table_names()
    assert "orders" in names and "items" in names, names
    columns = [column["name"] for column in sa.inspect(engine).get_columns("orders")]
    assert columns == ["tenant", "id", "amount", "note", "at"], columns


def with_alembic():
    """A migration is written out as SQL, for `lazuli sql ddl`; through the endpoint it is refused."""
    import io

    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    out = io.StringIO()
    context = MigrationContext.configure(dialect_name="postgresql", opts={"as_sql": True, "output_buffer": out})
    Operations(context).add_column("orders", sa.Column("state", sa.Text()))
    assert "ALTER TABLE orders ADD COLUMN state TEXT" in out.getvalue()
    engine = sa.create_engine(f"postgresql+psycopg://ada:secret@127.0.0.1:{PORT}/shop")
    with engine.connect() as connection:
        try:
            Operations(MigrationContext.configure(connection)).add_column("orders", sa.Column("state", sa.Text()))
            raise AssertionError("ALTER TABLE was run")
        except sa.exc.NotSupportedError as error:
            assert "lazuli sql ddl" in error.orig.diag.message_hint


with_psycopg()
asyncio.run(with_asyncpg())
with_sqlalchemy()
with_alembic()
print("psycopg, asyncpg, SQLAlchemy and Alembic work on the SQL endpoint")
