//! Calls of a scope that take views by value.

use std::ops::Deref;
use std::panic::Location;

use mpjdev::Mode;

use super::{Scope, ScopedRequest};
use crate::communicator::PointToPoint;
use crate::envelope::{Source, Tag};
use crate::error::Error;
use crate::memory::borrowed::Borrow;
use crate::memory::{RecvBuffer, SendBuffer, sink, source};

impl<'scope, 'env, C: Deref<Target = PointToPoint>> Scope<'scope, 'env, C> {
    /// Starts to send the elements of a view, which may be made inside the scope: [`Scope::isend`] takes a reference, so
    /// its buffer has to exist before the scope. The request returns the view.
    ///
    /// # Errors
    /// As [`Scope::isend`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let (mine, other, mut theirs) = ([[1, 2], [3, 4]], 1 - world.rank(), [0; 2]);
    ///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
    ///         scope.isend_view(mpj::column(mine.as_flattened(), 2, 1)?, other, 0)?;
    ///         scope.irecv(&mut theirs, other, 0)?;
    ///         Ok(())
    ///     });
    ///     outcome.unwrap();
    ///     assert_eq!(theirs, [2, 4]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn isend_view<V: SendBuffer + Borrow<Held = V> + 'env>(
        self,
        view: V,
        dest: usize,
        tag: i32,
    ) -> Result<ScopedRequest<'scope, V>, Error> {
        let on: &PointToPoint = self.check()?;
        let peer = on.peer(dest)?;
        let data = on.step(source(&view))?;
        let (to, place) = ((peer, tag, on.context), Location::caller());
        let describe = || on.describe::<V::Element>("isend", place);
        let request = on.device.isend_described(data, to, Mode::Standard, describe);
        let request = self.keep(on.started(request, Some(tag))?);
        Ok(self.request(request, view))
    }

    /// Starts to receive into the elements of a view, as [`Scope::isend_view`] sends them.
    ///
    /// # Errors
    /// As [`Scope::irecv`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let (other, mut matrix) = (1 - world.rank(), [[1, 2, 0], [3, 4, 0]]);
    ///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
    ///         let mut bands = mpj::split_columns_mut(matrix.as_flattened_mut(), 3, [1, 1, 1])?;
    ///         scope.irecv_view(bands.remove(2), other, 0)?;
    ///         scope.isend_view(bands.remove(1), other, 0)?;
    ///         Ok(())
    ///     });
    ///     outcome.unwrap();
    ///     assert_eq!(matrix, [[1, 2, 2], [3, 4, 4]]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn irecv_view<V: RecvBuffer + Borrow<Held = V> + 'env>(
        self,
        mut view: V,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<ScopedRequest<'scope, V>, Error> {
        let on: &PointToPoint = self.check()?;
        let (source, tag) = (on.sender(source.into())?, tag.into().value());
        let into = on.step(sink(&mut view))?;
        let place = Location::caller();
        let describe = || on.describe::<V::Element>("irecv", place);
        let request = on.device.irecv_described(into, source, tag, on.context, describe);
        let request = self.keep(on.started(request, tag)?);
        Ok(self.request(request, view))
    }
}
