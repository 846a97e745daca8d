//! Collections against naive models.

mod fill;
mod growth;
mod list_limits;
mod model_list;
mod model_members;
mod model_packed;
mod model_stream;
mod model_zset;
mod random;
